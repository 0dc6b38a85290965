#pragma once

#include <poll.h>
#include <stdbool.h>

/// What `--protocol=` says the standard streams of the command carry. Their bytes pass through the relay then, and only then: it counts
/// the requests without an answer, for as long as which the command stays awake.
enum protocol {
    NO_PROTOCOL,
    /// JSON-RPC 2.0: messages that follow each other, with or without headers between them.
    JSON_RPC,
    /// The Model Context Protocol. greenroomd may end the command while it sleeps: the relay keeps its streams, and starts it again when
    /// the client has written.
    MODEL_CONTEXT,
};

enum { PROTOCOL_ENDS = 4 };

/// Takes the caller's streams over, and creates those of the command.
bool protocol_begin(enum protocol protocol);
/// In the child: makes the command's ends its standard streams.
bool protocol_enter(void);
/// In the relay, once there is a child. One that was started again gets what the client had sent to the first one.
void protocol_started(void);
/// greenroomd has ended the command while it slept.
/// - Returns: false if it cannot be started again without a loss.
bool protocol_ended(void);
/// The command has ended by itself: passes on what it has written, until a signal arrives.
void protocol_finish(int signals);

/// What is to be polled.
void protocol_poll(struct pollfd ready[PROTOCOL_ENDS]);
/// Carries out what is ready.
/// - Returns: false if the client has left while the command is ended.
bool protocol_step(const struct pollfd ready[PROTOCOL_ENDS]);
/// Whether the command has to stay awake: a request has no answer yet.
bool protocol_is_busy(void);
/// Whether nothing can use the command any more once the caller is gone: its input has hung up, and its output is not read, or there is
/// no answer that could still be written to it. Unless that is sure, its client must have stopped to read.
bool protocol_client_left(bool is_sure);
/// Whether there is something for a command that is ended.
bool protocol_has_input(void);
