#pragma once
#include <microhttpd.h>

/* MHD_start_daemon takes variable arguments, which Swift does not call. The daemon serves `listener` from the caller's loop: it has an
   epoll descriptor, and no thread. `limit`: connections at a time. `timeout`: seconds in which a client has to send or read
   something. */
static inline struct MHD_Daemon *cmicrohttpd_start(
    int listener, unsigned int limit, unsigned int timeout, MHD_AccessHandlerCallback handler,
    MHD_RequestCompletedCallback completed, void *userdata) {
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handler, userdata, MHD_OPTION_LISTEN_SOCKET, listener,
        MHD_OPTION_CONNECTION_LIMIT, limit, MHD_OPTION_CONNECTION_TIMEOUT, timeout, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)16384, MHD_OPTION_NOTIFY_COMPLETED, completed, userdata, MHD_OPTION_END);
}

static inline int cmicrohttpd_epoll_descriptor(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info ? info->epoll_fd : -1;
}

/* Values of enums that Swift imports under other names, depending on the version of the header. */
static inline enum MHD_Result cmicrohttpd_result(int is_accepted) { return is_accepted ? MHD_YES : MHD_NO; }

static inline const char *cmicrohttpd_header(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* A response with a copy of the bytes. */
static inline struct MHD_Response *cmicrohttpd_response(const void *bytes, size_t size) {
    return MHD_create_response_from_buffer(size, (void *)bytes, MHD_RESPMEM_MUST_COPY);
}

/* Milliseconds until MHD_run is due; -1: not before the epoll descriptor is readable. */
static inline long long cmicrohttpd_timeout(struct MHD_Daemon *daemon) {
    MHD_UNSIGNED_LONG_LONG milliseconds = 0;
    return MHD_get_timeout(daemon, &milliseconds) == MHD_YES ? (long long)milliseconds : -1;
}

/* How many connections there are. */
static inline unsigned int cmicrohttpd_connections(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info ? info->num_connections : 0;
}
