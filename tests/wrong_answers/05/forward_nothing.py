"""nothing has computed yet, and the weights of unit"""


def forward(units):
    pass
