#pragma once

// Closing what strangers gave us: close(2) can wait for them as long as they like (a FUSE file's flush, a TCP socket
// with SO_LINGER, a terminal's drain), so it is done on a thread that is there while there is something to close.

struct clinux_closer;

/// NULL without memory.
struct clinux_closer *clinux_closer_create(void);
/// Takes over the descriptor. Closes it here and now where there can be no thread.
void clinux_closer_close(struct clinux_closer *closer, int descriptor);
/// Descriptors that are not closed yet.
unsigned clinux_closer_pending(struct clinux_closer *closer);
/// Never waits: the thread closes what is left, and frees the rest.
void clinux_closer_release(struct clinux_closer *closer);
