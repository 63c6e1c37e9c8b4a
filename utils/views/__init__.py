"""Shows: pictures and widgets. Computes nothing that `utils.theory` could."""
