"""How an app registers its handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Handler = TypeVar("Handler", bound=Callable[..., Any])


class Handlers:
    """The decorators of an app, one for each kind of event."""

    def _register(self, kind: str, handler: Handler) -> Handler:
        raise NotImplementedError

    # ---- Handlers

    def on_active(self, handler: Handler) -> Handler:
        """`handler(cause)`: the app has become active. `cause` is launch, return or interruptionEnded."""
        return self._register("didBecomeActive", handler)

    def on_inactive(self, handler: Handler) -> Handler:
        """`handler(cause)`: the app will stop being active. `cause` is interruption or background."""
        return self._register("willResignActive", handler)

    def on_foreground(self, handler: Handler) -> Handler:
        """`handler()`: the app returns from the background and will become active."""
        return self._register("willEnterForeground", handler)

    def on_background(self, handler: Handler) -> Handler:
        """`handler(remaining_seconds)`: the app is in the background. Its return is the answer; save the state in it."""
        return self._register("didEnterBackground", handler)

    def on_terminate(self, handler: Handler) -> Handler:
        """`handler(reason, deadline_seconds)`: the app will be ended. Its return is the answer, after which the app may be killed
        before `run()` returns: an app that ends in front saves its state here. `reason` is requested, shutdown, exitsOnSuspend,
        unloaded (UnloadAfterSec=) or jetsam, or SIGTERM or SIGINT if one of these signals came. Versions to come may have more.

        It is not called if the app is killed while it is suspended: it has saved its state in `on_background`.
        """
        return self._register("willTerminate", handler)

    def on_memory_warning(self, handler: Handler) -> Handler:
        """`handler(level)`: memory is short. `level` is warning or critical."""
        return self._register("memoryWarning", handler)

    def on_expiring(self, handler: Handler) -> Handler:
        """`handler(names, remaining_seconds)`: the background time ends, and these tasks are open."""
        return self._register("tasksExpiring", handler)

    def on_push(self, handler: Handler) -> Handler:
        """`handler(payload, id)`: a push has arrived. Its return completes the wake: a Result, True, False or None.

        The manifest needs `BackgroundModes=push`; otherwise `greenroomctl push` is refused.
        """
        return self._register("push", handler)

    def on_wake(self, handler: Handler) -> Handler:
        """`handler(reason, id)`: the app was woken, for example to fetch. Its return completes the wake, as of `on_push`."""
        return self._register("wake", handler)

    def on_url(self, handler: Handler) -> Handler:
        """`handler(url, scene)`: the app is to open a URL, in this scene."""
        return self._register("openURL", handler)

    def on_notification(self, handler: Handler) -> Handler:
        """`handler(kind, payload)`: something has changed, for example the locale."""
        return self._register("notification", handler)

    def on_withdraw(self, handler: Handler) -> Handler:
        """`handler()`: the app will be suspended. Take back what it advertises: a service on the network, a lease, a name on a bus. The
        suspension waits for the return, for BackgroundDeadlineSec= (5 s) at most. `on_resume` follows, also if the app is not suspended
        after all: advertise again in it.
        """
        return self._register("withdraw", handler)

    def on_suspend(self, handler: Handler) -> Handler:
        """`handler()`: the app will be suspended at once. The handler may be cut short by that."""
        return self._register("willSuspend", handler)

    def on_resume(self, handler: Handler) -> Handler:
        """`handler(suspended_seconds, changed)`: the app was suspended for so long. `changed`: the kinds of notifications."""
        return self._register("didResume", handler)

    def on_scene(self, handler: Handler) -> Handler:
        """`handler(scene, notice, reason)`: one of the scenes of the app has changed.

        `notice` is sceneWillConnect (a user has asked for the scene: create it), sceneWillEnterForeground, sceneDidBecomeActive,
        sceneWillResignActive, sceneDidEnterBackground or sceneDidDisconnect (destroy it: `reason` is memory if that is
        short, or closed if a user has closed it).
        """
        return self._register("scene", handler)

    def on_discard(self, handler: Handler) -> Handler:
        """`handler(scenes)`: a user has closed these scenes, now or while the app did not run: they do not come back."""
        return self._register("didDiscardScenes", handler)

    def on_snapshot(self, handler: Handler) -> Handler:
        """`handler()`: a picture of the app is wanted: it is in the background, or has got new data there. It returns the bytes of a
        PNG, or a tuple of bytes and a media type such as "image/jpeg" or "text/plain", or None if there is nothing to show.

        It has 500 ms. Then the app is suspended, and what it returns later is kept when it runs again.
        """
        return self._register("takeSnapshot", handler)

    def on_scene_snapshot(self, handler: Handler) -> Handler:
        """`handler(scene)`: a picture of this scene is wanted: it has entered the background, or was in front last and the app has got
        new data. It returns the same as a handler of `on_snapshot`, within the same time.
        """
        return self._register("takeSceneSnapshot", handler)
