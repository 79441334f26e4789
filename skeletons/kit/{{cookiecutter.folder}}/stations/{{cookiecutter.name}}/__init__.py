"""The kit `{{ cookiecutter.name }}`: how an order of it is assembled."""
