#include "session.h"
#include <errno.h>
#include <pipewire/pipewire.h>
#include <spa/param/audio/raw.h>
#include <spa/param/props.h>
#include <spa/pod/iter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

// Streams of PipeWire. One that runs, is not corked and not muted plays or records. One that plays counts unless it was silent for
// `longest_silence`. The state of links is not used: filters keep theirs active.
static struct stream {
    struct pw_proxy *node, *client;
    struct spa_hook node_listener, client_listener;
    uint32_t id;
    pid_t pid;
    bool records, is_call, runs, is_corked, is_muted, is_silent, asks_params;
    // When it was audible last, or began to play.
    uint64_t audible;
    uint32_t ports[MOST_PORTS];
    size_t port_count;
} *streams[MOST_STREAMS];

static struct pw_loop *pw;
static struct pw_context *context;
static struct pw_core *core;
static struct pw_registry *registry;
static struct spa_hook core_listener, registry_listener;
static struct retry retry;
static bool is_broken, sees_socket;

static struct stream *find(uint32_t id) {
    for (size_t i = 0; i < MOST_STREAMS; i++)
        if (streams[i] && streams[i]->id == id) return streams[i];
    return NULL;
}

static bool plays(const struct stream *stream) { return stream->runs && !stream->is_corked && !stream->is_muted; }

static void follow(struct stream *stream, bool played) {
    bool counts = plays(stream);
    if (!stream->records && counts != played) {
        stream->audible = now();
        stream->is_silent = false;
        (counts ? levels_follow : levels_remove)(stream->id);
    }
    unsigned modes = (stream->records ? MODE_RECORDING : MODE_AUDIO) | (stream->is_call ? MODE_CALL : 0);
    reports_set(SOURCE_STREAM, stream->id, stream->pid, counts && !stream->is_silent ? modes : 0);
}

void streams_measured(uint32_t node, bool is_silent) {
    struct stream *stream = find(node);
    if (!stream) return;
    if (!is_silent) stream->audible = now();
    stream->is_silent = now() - stream->audible >= longest_silence;
    follow(stream, plays(stream));
}

// MARK: The process

// A client of pipewire-pulse names its process itself; PipeWire knows those of all others.
static void client_info(void *data, const struct pw_client_info *info) {
    struct stream *stream = data;
    // Other changes come without the properties.
    if (!(info->change_mask & PW_CLIENT_CHANGE_MASK_PROPS)) return;
    const char *api = spa_dict_lookup(info->props, PW_KEY_CLIENT_API);
    bool is_pulse = api && !strcmp(api, "pipewire-pulse");
    const char *pid = spa_dict_lookup(info->props, is_pulse ? PW_KEY_APP_PROCESS_ID : PW_KEY_SEC_PID);
    long number = pid ? strtol(pid, NULL, 10) : 0;
    stream->pid = number > 0 && number <= INT32_MAX ? (pid_t)number : 0;
    follow(stream, plays(stream));
}

static const struct pw_client_events client_events = {PW_VERSION_CLIENT_EVENTS, .info = client_info};

static void bind_client(struct stream *stream, const struct spa_dict *props) {
    const char *id = spa_dict_lookup(props, PW_KEY_CLIENT_ID);
    if (stream->client || !id) return;
    stream->client = pw_registry_bind(registry, (uint32_t)strtoul(id, NULL, 10), PW_TYPE_INTERFACE_Client, PW_VERSION_CLIENT, 0);
    if (!stream->client) return;
    pw_client_add_listener((struct pw_client *)stream->client, &stream->client_listener, &client_events, stream);
}

// MARK: Streams

static void node_info(void *data, const struct pw_node_info *info) {
    struct stream *stream = data;
    bool played = plays(stream);
    stream->runs = info->state == PW_NODE_STATE_RUNNING;
    if (info->change_mask & PW_NODE_CHANGE_MASK_PROPS) {
        bind_client(stream, info->props);
        const char *text = spa_dict_lookup(info->props, PW_KEY_MEDIA_ROLE);
        // "phone": PulseAudio's name of the role.
        stream->is_call = text && (!strcmp(text, "Communication") || !strcmp(text, "phone"));
        text = spa_dict_lookup(info->props, "pulse.corked");
        stream->is_corked = text && !strcmp(text, "true");
    }
    if (!stream->asks_params && (info->change_mask & PW_NODE_CHANGE_MASK_PARAMS)) {
        uint32_t id = SPA_PARAM_Props;
        stream->asks_params = true;
        pw_node_subscribe_params((struct pw_node *)stream->node, &id, 1);
    }
    follow(stream, played);
}

static void node_param(void *data, int seq, uint32_t id, uint32_t index, uint32_t next, const struct spa_pod *param) {
    (void)seq, (void)index, (void)next;
    struct stream *stream = data;
    if (id != SPA_PARAM_Props || !param || !spa_pod_is_object(param)) return;
    bool played = plays(stream), is_muted = false;
    struct spa_pod_prop *prop;
    SPA_POD_OBJECT_FOREACH((struct spa_pod_object *)param, prop) {
        if (prop->key == SPA_PROP_mute) {
            bool value;
            if (spa_pod_get_bool(&prop->value, &value) >= 0 && value) is_muted = true;
        } else if (prop->key == SPA_PROP_channelVolumes) {
            float volumes[SPA_AUDIO_MAX_CHANNELS], loudest = 0;
            uint32_t count = spa_pod_copy_array(&prop->value, SPA_TYPE_Float, volumes, SPA_AUDIO_MAX_CHANNELS);
            for (uint32_t i = 0; i < count; i++) loudest = volumes[i] > loudest ? volumes[i] : loudest;
            if (count > 0 && loudest <= 0) is_muted = true;
        }
    }
    stream->is_muted = is_muted;
    follow(stream, played);
}

static const struct pw_node_events node_events = {PW_VERSION_NODE_EVENTS, .info = node_info, .param = node_param};

static void drop(size_t index) {
    struct stream *stream = streams[index];
    streams[index] = NULL;
    levels_remove(stream->id);
    reports_set(SOURCE_STREAM, stream->id, 0, 0);
    spa_hook_remove(&stream->node_listener);
    pw_proxy_destroy(stream->node);
    if (stream->client) {
        spa_hook_remove(&stream->client_listener);
        pw_proxy_destroy(stream->client);
    }
    free(stream);
}

size_t streams_ports(uint32_t node, uint32_t ports[MOST_PORTS]) {
    struct stream *stream = find(node);
    if (!stream) return 0;
    memcpy(ports, stream->ports, stream->port_count * sizeof *ports);
    return stream->port_count;
}

static void add_port(uint32_t id, const struct spa_dict *props) {
    const char *node = spa_dict_lookup(props, PW_KEY_NODE_ID), *direction = spa_dict_lookup(props, PW_KEY_PORT_DIRECTION);
    struct stream *stream = node && direction && !strcmp(direction, "out") ? find((uint32_t)strtoul(node, NULL, 10)) : NULL;
    if (stream && !stream->records && stream->port_count < MOST_PORTS) stream->ports[stream->port_count++] = id;
}

static void remove_port(uint32_t id) {
    for (size_t i = 0; i < MOST_STREAMS; i++) {
        struct stream *stream = streams[i];
        for (size_t port = 0; stream && port < stream->port_count; port++)
            if (stream->ports[port] == id) stream->ports[port--] = stream->ports[--stream->port_count];
    }
}

static void add_stream(uint32_t id, const struct spa_dict *props) {
    const char *class = spa_dict_lookup(props, PW_KEY_MEDIA_CLASS);
    bool records = class && !strcmp(class, "Stream/Input/Audio");
    if (!class || (!records && strcmp(class, "Stream/Output/Audio"))) return;
    // A meter of a volume control is no recording.
    const char *monitor = spa_dict_lookup(props, PW_KEY_STREAM_MONITOR);
    if (records && monitor && !strcmp(monitor, "true")) return;
    size_t slot = 0;
    while (slot < MOST_STREAMS && streams[slot]) slot++;
    struct stream *stream = slot < MOST_STREAMS ? calloc(1, sizeof *stream) : NULL;
    if (!stream) return;
    stream->id = id;
    stream->records = records;
    stream->node = pw_registry_bind(registry, id, PW_TYPE_INTERFACE_Node, PW_VERSION_NODE, 0);
    if (!stream->node) return free(stream);
    streams[slot] = stream;
    pw_node_add_listener((struct pw_node *)stream->node, &stream->node_listener, &node_events, stream);
}

static void added(
    void *data, uint32_t id, uint32_t permissions, const char *type, uint32_t version, const struct spa_dict *props) {
    (void)data, (void)permissions, (void)version;
    if (props && !strcmp(type, PW_TYPE_INTERFACE_Node)) add_stream(id, props);
    if (props && !strcmp(type, PW_TYPE_INTERFACE_Port)) add_port(id, props);
}

static void removed(void *data, uint32_t id) {
    (void)data;
    remove_port(id);
    for (size_t i = 0; i < MOST_STREAMS; i++)
        if (streams[i] && streams[i]->id == id) return drop(i);
}

static const struct pw_registry_events registry_events = {PW_VERSION_REGISTRY_EVENTS, .global = added, .global_remove = removed};

// MARK: The connection

static void failed(void *data, uint32_t id, int seq, int status, const char *message) {
    (void)data, (void)seq, (void)message;
    // PipeWire has ended, or does not want this client. Other errors concern a node or a link that is gone.
    if (id == PW_ID_CORE && status == -EPIPE) is_broken = true;
}

static const struct pw_core_events core_events = {PW_VERSION_CORE_EVENTS, .error = failed};

static void disconnect(void) {
    for (size_t i = 0; i < MOST_STREAMS; i++)
        if (streams[i]) drop(i);
    levels_lost();
    if (registry) pw_proxy_destroy((struct pw_proxy *)registry);
    if (core) pw_core_disconnect(core);
    registry = NULL;
    core = NULL;
    is_broken = false;
    retry_arm(&retry);
}

static int connect_pipewire(sd_event_source *source, uint64_t at, void *userdata) {
    (void)source, (void)at, (void)userdata;
    if (core) return 0;
    core = pw_context_connect(context, NULL, 0);
    if (!core) {
        // Without a socket it does not run: the socket is seen when it is made.
        bool is_absent = errno == EHOSTDOWN || errno == ENOENT;
        if (!is_absent || !sees_socket) retry_arm(&retry);
        return 0;
    }
    pw_core_add_listener(core, &core_listener, &core_events, NULL);
    registry = pw_core_get_registry(core, PW_VERSION_REGISTRY, 0);
    if (!registry) {
        disconnect();
        return 0;
    }
    pw_registry_add_listener(registry, &registry_listener, &registry_events, NULL);
    levels_connected(core);
    return 0;
}

static int readable(sd_event_source *source, int descriptor, uint32_t events, void *userdata) {
    (void)source, (void)descriptor, (void)events, (void)userdata;
    // One round; what is left makes the descriptor readable again.
    pw_loop_iterate(pw, 0);
    if (is_broken) disconnect();
    return 0;
}

static int appeared(sd_event_source *source, const struct inotify_event *event, void *userdata) {
    (void)source, (void)userdata;
    // It takes a moment until it accepts connections.
    if (event->len && !strncmp(event->name, "pipewire-", 9) && !core) retry_arm(&retry);
    return 0;
}

int streams_begin(void) {
    pw_init(NULL, NULL);
    pw = pw_loop_new(NULL);
    if (pw) pw_loop_enter(pw);
    context = pw ? pw_context_new(pw, NULL, 0) : NULL;
    if (!context) {
        // Its modules are not installed. There are players all the same.
        fprintf(stderr, "greenroom-session: cannot use PipeWire: %s\n", strerror(errno));
        return 0;
    }
    int status = sd_event_add_io(loop, NULL, pw_loop_get_fd(pw), EPOLLIN, readable, NULL);
    if (status >= 0) status = levels_begin();
    if (status >= 0) status = retry_begin(&retry, connect_pipewire, NULL);
    if (status < 0) return status;
    const char *folder = getenv("PIPEWIRE_RUNTIME_DIR");
    if (!folder) folder = getenv("XDG_RUNTIME_DIR");
    sees_socket = folder && sd_event_add_inotify(loop, NULL, folder, IN_CREATE | IN_MOVED_TO, appeared, NULL) >= 0;
    return connect_pipewire(NULL, 0, NULL);
}
