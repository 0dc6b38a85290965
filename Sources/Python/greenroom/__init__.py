"""Takes part in the app lifecycle of Greenroom.

    import greenroom

    app = greenroom.App()
    state = app.restore({"count": 0})

    @app.on_background
    def save():
        app.save(state)

    app.run()

docs/APPS.md (/usr/share/doc/greenroom/APPS.md) is a guide.
"""

from ._app import App
from ._errors import Error, Refused, TaskExpired, Unavailable
from ._events import Launch, Result
from ._task import Task

__all__ = ["App", "Error", "Launch", "Refused", "Result", "Task", "TaskExpired", "Unavailable"]
