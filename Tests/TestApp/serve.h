#pragma once

/// `greenroom-testapp serve FILE`, see serve.c.
int serve(const char *file);

/// Sends back what a connection has received. Returns whether it is still open.
int send_back(int connection);
