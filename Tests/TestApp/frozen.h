/// Waits once in a system call, and prints its number and how it ended: what a freeze does to it. Returns the exit status.
int wait_frozen(const char *name);
