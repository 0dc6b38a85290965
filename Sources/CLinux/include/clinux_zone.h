#pragma once

// Time zones of mktime(3) and localtime_r(3).

#include <stdbool.h>

/// Makes this the time zone of mktime(3) and localtime_r(3) until `clinux_end_zone`: "Europe/Berlin", or, for NULL, that of the
/// process, which is read again if its file has changed. The environment of the process is set aside meanwhile: of one thread at a
/// time, with calls of these functions only.
void clinux_begin_zone(const char *zone);
void clinux_end_zone(void);
/// 0 or 1, `tm_isdst`, if this is an abbreviation of the current time zone such as CET or CEST, in either case; -1: it is none.
int clinux_zone_abbreviation(const char *name);
/// Whether the time zone database has this zone.
bool clinux_has_zone(const char *zone);
