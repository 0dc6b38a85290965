#!/usr/bin/python3
"""uploader.py: copies a file in pieces in a background task, and continues after having been killed.

A URL says which: greenroomctl open upload:/path/of/file. The copy is in STATE_DIRECTORY.
"""
import asyncio
import os

import greenroom

PIECE = 64 << 10
app = greenroom.App()
folder = os.environ.get("STATE_DIRECTORY", ".")
# The paths that are not finished. What is copied already is known from the size of the copy.
files = app.restore([])
added = asyncio.Event()


@app.on_url
async def add(url):
    files.append(url.removeprefix("upload:"))
    app.save(files)
    added.set()


@app.on_background
async def enter_background():
    app.save(files)


async def upload(path):
    """Copies one file. An expired task stops it between two pieces; the next call continues there."""
    target = os.path.join(folder, os.path.basename(path))
    with open(path, "rb") as source, open(target, "ab") as copy:
        source.seek(copy.tell())
        while piece := source.read(PIECE):
            copy.write(piece)
            copy.flush()
            app.status(f"{path}: {copy.tell() // 1024} KiB")
            await asyncio.sleep(0.01)


async def work():
    while True:
        added.clear()
        while files:
            try:
                async with app.task("upload"):
                    await upload(files[0])
            except (greenroom.TaskExpired, greenroom.Refused):
                # The app is about to be suspended. It continues when it runs again.
                await asyncio.sleep(1)
                continue
            except OSError as error:
                app.status(f"{files[0]}: {error.strerror}")
            del files[0]
            app.save(files)
        await added.wait()


async def main():
    worker = asyncio.create_task(work())
    await app.run()
    worker.cancel()

asyncio.run(main())
