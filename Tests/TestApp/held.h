#pragma once

/// `greenroom-testapp held COMMAND…`, see held.c.
int serve_held(char **commands);
