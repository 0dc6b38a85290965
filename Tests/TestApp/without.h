#pragma once

/// Executes a program for which socket(2) fails as in a kernel without IPv6. Returns an exit status if that fails.
int execute_without_ipv6(char **command);
