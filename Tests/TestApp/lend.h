#pragma once
/// Lets a child lend connections at a socket with this path. Returns once the child listens.
void lend(const char *path);
