// greenroom-session: reports to greenroomd what the programs of a user's session do, as far as it can be seen from outside:
// streams of PipeWire that are audible or record, and players that play (L28), when the settings of the desktop or the
// online accounts change (L33), whether a critical notification is shown (L13), when the device has moved, and messages of push servers
// (L30). It decides nothing: the daemon knows which of these processes belong to apps, and which modes their
// manifests declare.
#ifndef SESSION_H
#define SESSION_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

// What a stream or a player shows of its process. Bits of a set.
enum { MODE_AUDIO = 1, MODE_RECORDING = 2, MODE_CALL = 4, MODE_COUNT = 3 };

// Where it is seen. The numbers of streams are those of PipeWire; those of players are given by players.c.
enum source { SOURCE_STREAM, SOURCE_PLAYER };

// The most streams, and the most players, that are followed: a desktop has a dozen. Those beyond are left out.
enum { MOST_STREAMS = 128, MOST_PLAYERS = 64 };
// The ports of a stream that are listened to: of more than 8 channels the first ones.
enum { MOST_PORTS = 8 };

// Times in microseconds of CLOCK_MONOTONIC.
#define SECOND UINT64_C(1000000)

extern sd_event *loop;
extern bool is_verbose;
// How long a stream may be silent before it no longer counts.
extern uint64_t longest_silence;

uint64_t now(void);

// A connection is tried again after 1 s, doubling up to 1 min.
struct retry {
    sd_event_source *timer;
    uint64_t delay, began;
};
// Copies a text into an array of this size, if it is short enough.
bool copy(char *to, size_t size, const char *text);
int retry_begin(struct retry *retry, sd_event_time_handler_t handler, void *userdata);
void retry_arm(struct retry *retry);

// buses.c: the bus of the session, which has the players and the user's daemon, and the bus of the system with the system's daemon.
enum bus { BUS_SESSION, BUS_SYSTEM, BUS_COUNT };
int buses_begin(void);
void buses_end(void);

// reports.c: the modes that are shown, and the daemons that are notified.
int reports_begin(void);
void reports_connected(enum bus which, sd_bus *bus);
void reports_lost(enum bus which);
// Calls a method of a daemon, with arguments of these types, and prints a refusal with --verbose. The call of this slot that is not answered
// yet is replaced: the daemon has what it is sent last.
void report(sd_bus *bus, sd_bus_slot **slot, const char *method, const char *types, ...);
// This source shows these modes of a process, and no others. No modes: it is gone, or shows nothing.
void reports_set(enum source source, uint32_t number, pid_t pid, unsigned modes);

// streams.c: the streams of PipeWire.
int streams_begin(void);

// digests.c: the settings of the desktop and the online accounts, for daemons that want to know when they change.
int digests_begin(void);
void digests_connected(enum bus which, sd_bus *bus);
void digests_lost(enum bus which);
void settings_wanted(enum bus which, bool is_wanted);
void accounts_wanted(enum bus which, bool is_wanted);

// alerts.c: whether a critical notification is shown, for daemons that want to know.
int alerts_begin(void);
void alerts_connected(enum bus which, sd_bus *bus);
void alerts_lost(enum bus which);
void alerts_wanted(enum bus which, bool is_wanted);

// locations.c: moves of the device, for apps of daemons that want to know.
int locations_begin(void);
void locations_connected(enum bus which, sd_bus *bus);
void locations_lost(enum bus which);
// The answer with the list of apps, or an error.
void locations_wanted(enum bus which, sd_bus_message *reply);

// push.c: messages of push servers, for apps of daemons that want to know.
int push_begin(void);
void push_connected(enum bus which, sd_bus *bus);
void push_lost(enum bus which);
// The answer with the list of apps, or an error.
void push_wanted(enum bus which, sd_bus_message *reply);

// tokens.c: the token with which an app is registered, kept in a file.
enum { TOKEN_SIZE = 33 };
bool token_make(enum bus which, const char *app, char token[TOKEN_SIZE]);
void token_remove(enum bus which, const char *app);
void tokens_load(void (*loaded)(enum bus which, const char *app, const char *token));

// wanted.c: what the daemons want to know.
void wanted_connected(enum bus which, sd_bus *bus);
void wanted_lost(enum bus which);
// The daemon on this bus has begun or ended.
void wanted_ask(enum bus which);
// Whether this user, by name or number, is that of this program.
bool is_mine(const char *user);

// levels.c: measures whether a stream is silent, one at a time.
struct pw_core;
int levels_begin(void);
void levels_connected(struct pw_core *core);
void levels_lost(void);
// From now on this stream is measured now and then: `streams_measured` is called with the results.
void levels_follow(uint32_t node);
void levels_remove(uint32_t node);
void streams_measured(uint32_t node, bool is_silent);
// The output ports of a stream; 0: it has none, or is gone.
size_t streams_ports(uint32_t node, uint32_t ports[MOST_PORTS]);

// players.c: players on the bus of the session that take part in MPRIS.
void players_connected(sd_bus *bus);
void players_lost(void);
#endif
