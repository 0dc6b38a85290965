#pragma once

/// `greenroom-testapp serve FILE`, see serve.c.
int serve(const char *file);
