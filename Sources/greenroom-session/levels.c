#include "session.h"
#include <pipewire/filter.h>
#include <pipewire/pipewire.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

// Some programs never stop their streams. A stream that plays is measured for a second, now and then, by a node without a media
// class: session managers and volume controls ignore it. Without a link the node costs nothing.
static const uint64_t listening = SECOND;
// The most between two measurements of a stream.
static const uint64_t longest_interval = 30 * SECOND;
// -72 dBFS: the noise that dithering adds is less.
static const float silence = 0.00025f;

static struct level {
    // A node of PipeWire; SPA_ID_INVALID: the slot is free.
    uint32_t node;
    uint64_t due;
} levels[MOST_STREAMS];
static struct level *measured;
static uint64_t measured_until;
static sd_event_source *timer;
static struct pw_core *core;
static struct pw_filter *filter;
static void *port;
static struct spa_hook filter_listener;
static struct pw_proxy *links[MOST_PORTS];
// Written by the thread of PipeWire that plays.
static atomic_bool has_data, is_audible;

static uint64_t interval(void) { return longest_silence / 4 < longest_interval ? longest_silence / 4 : longest_interval; }

static void process(void *data, struct spa_io_position *position) {
    (void)data;
    uint32_t count = (uint32_t)position->clock.duration;
    const float *samples = pw_filter_get_dsp_buffer(port, count);
    if (!samples) return;
    atomic_store_explicit(&has_data, true, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        if (samples[i] > silence || samples[i] < -silence) {
            atomic_store_explicit(&is_audible, true, memory_order_relaxed);
            return;
        }
    }
}

static const struct pw_filter_events filter_events = {PW_VERSION_FILTER_EVENTS, .process = process};

static void unlink_node(void) {
    for (size_t i = 0; i < MOST_PORTS; i++) {
        if (links[i]) pw_proxy_destroy(links[i]);
        links[i] = NULL;
    }
    measured = NULL;
}

static void link_node(struct level *level) {
    uint32_t own = filter ? pw_filter_get_node_id(filter) : SPA_ID_INVALID, ports[MOST_PORTS];
    size_t count = streams_ports(level->node, ports);
    if (own == SPA_ID_INVALID || count == 0) return;
    atomic_store(&has_data, false);
    atomic_store(&is_audible, false);
    measured = level;
    measured_until = now() + listening;
    // All channels are added up in one port. A passive link keeps no node running.
    for (size_t i = 0; i < count; i++) {
        char node[16], output[16], input[16];
        snprintf(node, sizeof node, "%u", level->node);
        snprintf(output, sizeof output, "%u", ports[i]);
        snprintf(input, sizeof input, "%u", own);
        struct spa_dict_item items[] = {
            SPA_DICT_ITEM_INIT(PW_KEY_LINK_OUTPUT_NODE, node), SPA_DICT_ITEM_INIT(PW_KEY_LINK_OUTPUT_PORT, output),
            SPA_DICT_ITEM_INIT(PW_KEY_LINK_INPUT_NODE, input), SPA_DICT_ITEM_INIT(PW_KEY_LINK_INPUT_PORT, "input"),
            SPA_DICT_ITEM_INIT(PW_KEY_LINK_PASSIVE, "true"), SPA_DICT_ITEM_INIT(PW_KEY_OBJECT_LINGER, "false")};
        struct spa_dict properties = SPA_DICT_INIT_ARRAY(items);
        links[i] = pw_core_create_object(core, "link-factory", PW_TYPE_INTERFACE_Link, PW_VERSION_LINK, &properties, 0);
    }
}

static void arm(void) {
    uint64_t due = UINT64_MAX;
    for (size_t i = 0; i < MOST_STREAMS; i++)
        if (levels[i].node != SPA_ID_INVALID && levels[i].due < due) due = levels[i].due;
    if (measured) due = measured_until;
    sd_event_source_set_enabled(timer, due == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
    if (due != UINT64_MAX) sd_event_source_set_time(timer, due);
}

static int due(sd_event_source *source, uint64_t at, void *userdata) {
    (void)source, (void)at, (void)userdata;
    if (measured) {
        uint32_t node = measured->node;
        measured->due = now() + interval();
        unlink_node();
        // Where nothing can be measured, a stream that runs is taken for audible.
        if (atomic_load(&has_data)) streams_measured(node, !atomic_load(&is_audible));
    } else {
        struct level *first = NULL;
        for (size_t i = 0; i < MOST_STREAMS; i++)
            if (levels[i].node != SPA_ID_INVALID && (!first || levels[i].due < first->due)) first = &levels[i];
        if (first) {
            first->due = now() + interval();
            link_node(first);
        }
    }
    arm();
    return 0;
}

int levels_begin(void) {
    for (size_t i = 0; i < MOST_STREAMS; i++) levels[i].node = SPA_ID_INVALID;
    int status = sd_event_add_time(loop, &timer, CLOCK_MONOTONIC, 0, SECOND / 10, due, NULL);
    return status < 0 ? status : sd_event_source_set_enabled(timer, SD_EVENT_OFF);
}

void levels_connected(struct pw_core *connected) {
    core = connected;
    filter = pw_filter_new(core, "greenroom-session",
        pw_properties_new(PW_KEY_NODE_NAME, "greenroom-session", PW_KEY_NODE_PASSIVE, "true", PW_KEY_NODE_DESCRIPTION,
            "Greenroom: is a stream silent?", NULL));
    if (!filter) return;
    pw_filter_add_listener(filter, &filter_listener, &filter_events, NULL);
    port = pw_filter_add_port(filter, PW_DIRECTION_INPUT, PW_FILTER_PORT_FLAG_MAP_BUFFERS, sizeof(int),
        pw_properties_new(PW_KEY_FORMAT_DSP, "32 bit float mono audio", PW_KEY_PORT_NAME, "input", NULL), NULL, 0);
    if (port && pw_filter_connect(filter, PW_FILTER_FLAG_RT_PROCESS, NULL, 0) >= 0) return;
    pw_filter_destroy(filter);
    filter = NULL;
}

void levels_lost(void) {
    unlink_node();
    if (filter) pw_filter_destroy(filter);
    filter = NULL;
    core = NULL;
    for (size_t i = 0; i < MOST_STREAMS; i++) levels[i].node = SPA_ID_INVALID;
    arm();
}

void levels_follow(uint32_t node) {
    struct level *level = NULL;
    for (size_t i = 0; i < MOST_STREAMS; i++) {
        if (levels[i].node == node) return;
        if (!level && levels[i].node == SPA_ID_INVALID) level = &levels[i];
    }
    if (!level) return;
    *level = (struct level){node, now() + interval()};
    arm();
}

void levels_remove(uint32_t node) {
    for (size_t i = 0; i < MOST_STREAMS; i++) {
        if (levels[i].node != node) continue;
        levels[i].node = SPA_ID_INVALID;
        if (measured == &levels[i]) unlink_node();
        arm();
    }
}
