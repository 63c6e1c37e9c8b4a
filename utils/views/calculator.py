"""What every calculator is: controls, a sentence and one picture that is kept and redrawn while a control moves."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from ipywidgets import HTML, HBox, Image, Layout, VBox, Widget

from utils.theory.arguments import unknown
from utils.views.board import Board, Scene
from utils.views.controls import Setting
from utils.views.figure import WIDTH, mime_bundle, png_bytes

_FAST = 1  # compression while a slider moves


class Calculator(VBox):
    """A live widget that leaves a static picture with its words where there is no kernel.

    Sizes are fixed, so that nothing on the page jumps. A subclass makes its controls, hands them to `lay_out`, and
    calls `show` with a scene and its words whenever one of them moves.
    """

    result: Any = None  # what is shown, as numbers and words; subclasses say which

    def __setattr__(self, name: str, value: Any) -> None:
        """Raises AttributeError, in one sentence, for a name that is neither a setting nor a widget's own: a misspelt
        setting would otherwise be kept, and move nothing."""
        if not name.startswith("_") and not hasattr(type(self), name):
            settings = tuple(sorted(self.settings()))
            raise AttributeError(unknown(f"the setting of a {type(self).__name__}", name, settings))
        super().__setattr__(name, value)

    @classmethod
    def settings(cls) -> set[str]:
        """The names of what can be set: the calculator's own attributes that move a control."""
        return {
            name
            for owner in cls.__mro__[: cls.__mro__.index(Calculator)]
            for name, value in vars(owner).items()
            if isinstance(value, Setting) or (isinstance(value, property) and value.fset)
        }

    def __init__(self, height: int, words_height: int) -> None:
        self._board = Board(height, WIDTH)
        self._said = ""
        self._words = HTML(layout=Layout(width=f"{WIDTH}px", height=f"{words_height}px", overflow="hidden"))
        self._image = Image(
            format="png",
            width=WIDTH,
            height=height,
            layout=Layout(width=f"{WIDTH}px", height=f"{height}px", flex="0 0 auto", object_fit="contain"),
        )
        super().__init__()

    def lay_out(self, controls: Sequence[Widget]) -> None:
        """Controls above, the sentence below them, the picture last."""
        row = HBox(list(controls), layout=Layout(flex_flow="row wrap", width=f"{WIDTH}px"))
        self.children = [row, self._words, self._image]

    def show(self, scene: Scene, words: str) -> None:
        """Redraw the one figure, and say the same in words that a screen reader announces."""
        self._said = words
        self._board.show(scene)
        with self.hold_sync():
            self._words.value = f'<div role="status" style="line-height: 1.4">{escape(words)}</div>'
            self._image.value = png_bytes(self._board.figure, _FAST)

    def image_bytes(self) -> bytes:
        """The picture as a small PNG."""
        return png_bytes(self._board.figure)

    def __repr__(self) -> str:
        return f"Calculator: {self._said}"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The live widget where there is a kernel; the picture and its words where there is none."""
        return {**super()._repr_mimebundle_(**kwargs), **mime_bundle(self.image_bytes(), repr(self))}
