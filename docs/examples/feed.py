#!/usr/bin/python3
"""feed.py: keeps the headlines that pushes bring: greenroomctl push feed 'A headline'. It needs no descriptor, signal or inbox."""
import greenroom

app = greenroom.App()
headlines = app.restore([])


@app.on_push
def push(headline):
    if not headline or headline in headlines:
        return greenroom.Result.NO_DATA
    headlines.append(headline)
    del headlines[:-100]
    app.save(headlines)
    app.status(f"{len(headlines)} headlines, the last: {headline}")
    return greenroom.Result.NEW_DATA


@app.on_active
def active(cause):
    app.status(f"{len(headlines)} headlines ({cause})")


@app.on_background
def background():
    app.save(headlines)


app.run()
