#pragma once
#include <stdint.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/uio.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>
#include <systemd/sd-journal.h>

/*
 * Entries of an sd_bus vtable. Swift cannot use the library's macros, which are initialisers. sd-bus-vtable.h requires unused
 * bytes of the union to be zero.
 */

static inline void csystemd_vtable_start(sd_bus_vtable *entry) {
    memset(entry, 0, sizeof(*entry));
    entry->type = _SD_BUS_VTABLE_START;
    entry->x.start.element_size = sizeof(sd_bus_vtable);
    entry->x.start.features = _SD_BUS_VTABLE_PARAM_NAMES;
    entry->x.start.vtable_format_reference = &sd_bus_object_vtable_format;
}

static inline void csystemd_vtable_end(sd_bus_vtable *entry) {
    memset(entry, 0, sizeof(*entry));
    entry->type = _SD_BUS_VTABLE_END;
}

/* `names`: the names of the arguments and then of the results, each with a NUL, then another NUL. */
static inline void csystemd_vtable_method(sd_bus_vtable *entry, const char *member, const char *signature,
                                          const char *result, const char *names, sd_bus_message_handler_t handler,
                                          uint64_t flags) {
    memset(entry, 0, sizeof(*entry));
    entry->type = _SD_BUS_VTABLE_METHOD;
    entry->flags = flags;
    entry->x.method.member = member;
    entry->x.method.signature = signature;
    entry->x.method.result = result;
    entry->x.method.names = names;
    entry->x.method.handler = handler;
}

static inline void csystemd_vtable_signal(sd_bus_vtable *entry, const char *member, const char *signature,
                                          const char *names, uint64_t flags) {
    memset(entry, 0, sizeof(*entry));
    entry->type = _SD_BUS_VTABLE_SIGNAL;
    entry->flags = flags;
    entry->x.signal.member = member;
    entry->x.signal.signature = signature;
    entry->x.signal.names = names;
}

static inline void csystemd_vtable_property(sd_bus_vtable *entry, const char *member, const char *signature,
                                            sd_bus_property_get_t get, uint64_t flags) {
    memset(entry, 0, sizeof(*entry));
    entry->type = _SD_BUS_VTABLE_PROPERTY;
    entry->flags = flags;
    entry->x.property.member = member;
    entry->x.property.signature = signature;
    entry->x.property.get = get;
}

/* Flags as functions: Swift does not import the 64 bit enumerators of an anonymous enum with one type. */

static inline uint64_t csystemd_flag_unprivileged(void) { return SD_BUS_VTABLE_UNPRIVILEGED; }
static inline uint64_t csystemd_flag_constant(void) { return SD_BUS_VTABLE_PROPERTY_CONST; }
static inline uint64_t csystemd_flag_emits_change(void) { return SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE; }
static inline uint64_t csystemd_creds_caller(void) {
    return SD_BUS_CREDS_PID | SD_BUS_CREDS_UID | SD_BUS_CREDS_EUID | SD_BUS_CREDS_GID | SD_BUS_CREDS_EGID;
}
