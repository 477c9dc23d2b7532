// SPDX-License-Identifier: Apache-2.0
// Turns a program into a fork server, when it is preloaded and FORK_SERVER is the path of a socket.
//
// The library is initialized first: the dynamic linker has bound all libraries, and no code of them has run.
// The process then waits for requests, and forks a child for each. Only the child goes on, with the
// initializers of the libraries and with main. So no library sees a fork: Swift's runtime and libdispatch
// remember the number of the thread in which they started.
#define _GNU_SOURCE
#include "request.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int main_function(int, char **, char **);
typedef int start_function(
  main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

static main_function *program_main;

// For the program in a child of the server.
static int argument_count;
static char **arguments;
static char **variables;

// The clients whose programs run. Further ones wait in the queue of the socket.
enum { CLIENT_LIMIT = 64 };
static struct client {
  int socket;
  pid_t child;
} clients[CLIENT_LIMIT];
static int client_count;

static int read_bytes(int from, char *bytes, size_t count) {
  while (count > 0) {
    ssize_t part = read(from, bytes, count);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return -1;
    bytes += part;
    count -= part;
  }
  return 0;
}

static int receive(int socket, struct request *request, int *descriptors) {
  size_t byte_count = DESCRIPTOR_COUNT * sizeof *descriptors;
  char control[CMSG_SPACE(DESCRIPTOR_COUNT * sizeof *descriptors)];
  struct iovec part = {request, sizeof *request};
  struct msghdr message = {
    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  struct cmsghdr *header = received > 0 ? CMSG_FIRSTHDR(&message) : NULL;
  if (!header || header->cmsg_len != CMSG_LEN(byte_count)) return -1;
  memcpy(descriptors, CMSG_DATA(header), byte_count);
  return received == sizeof *request ? 0 : -1;
}

// Takes over all that a program inherits from the process that starts it.
static void inherit(const struct request *request, const int *descriptors, char *strings) {
  uint32_t count = request->argument_count;
  arguments = calloc(count + 1, sizeof *arguments);
  variables = calloc(request->variable_count + 1, sizeof *variables);
  for (uint32_t index = 0; index < count + request->variable_count; index++) {
    *(index < count ? arguments + index : variables + (index - count)) = strings;
    strings += strlen(strings) + 1;
  }
  argument_count = (int)count;

  for (int index = 0; index < 3; index++) dup2(descriptors[index], index);
  if (fchdir(descriptors[3]) < 0) _exit(126);
  for (int index = 0; index < DESCRIPTOR_COUNT; index++) close(descriptors[index]);
  umask(request->file_mode_mask);
  for (int resource = 0; resource < RLIM_NLIMITS; resource++)
    setrlimit(resource, &request->limits[resource]);
  sigset_t blocked;
  sigemptyset(&blocked);
  for (int number = 1; number <= LAST_SIGNAL; number++) {
    uint64_t bit = UINT64_C(1) << (number - 1);
    signal(number, request->ignored_signals & bit ? SIG_IGN : SIG_DFL);
    if (request->blocked_signals & bit) sigaddset(&blocked, number);
  }
  sigprocmask(SIG_SETMASK, &blocked, NULL);
}

// Reads a request. Returns true in the child that is to be the program.
static bool start_program(int listener, int deaths) {
  int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  struct request request;
  int descriptors[DESCRIPTOR_COUNT];
  if (socket < 0) return false;
  if (receive(socket, &request, descriptors) < 0) {
    close(socket);
    return false;
  }
  char *strings = malloc(request.byte_count);
  pid_t child = -1;
  if (strings && read_bytes(socket, strings, request.byte_count) == 0) child = fork();
  if (child == 0) {
    close(listener);
    close(deaths);
    close(socket);
    for (int index = 0; index < client_count; index++) close(clients[index].socket);
    inherit(&request, descriptors, strings);
    return true;
  }
  if (child > 0)
    clients[client_count++] = (struct client){socket, child};
  else
    close(socket);
  for (int index = 0; index < DESCRIPTOR_COUNT; index++) close(descriptors[index]);
  free(strings);
  return false;
}

// Reports to the clients how their programs ended.
static void report_ends(int deaths) {
  struct signalfd_siginfo information;
  while (read(deaths, &information, sizeof information) > 0) continue;
  int status;
  for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;)
    for (int index = 0; index < client_count; index++) {
      if (clients[index].child != child) continue;
      send(clients[index].socket, &status, sizeof status, MSG_NOSIGNAL);
      close(clients[index].socket);
      clients[index] = clients[--client_count];
      break;
    }
}

// Libc is not yet initialized here. It can make system calls and allocate memory, but has no environment.
__attribute__((constructor)) static void serve(int count, char **words, char **environment) {
  (void)count;
  (void)words;
  const char *path = NULL;
  for (char **variable = environment; *variable; variable++)
    if (strncmp(*variable, "FORK_SERVER=", 12) == 0) path = *variable + 12;
  if (!path) return;
  // The server ends with the script that has started it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = socket_address(path);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 ||
      listen(listener, SOMAXCONN) < 0) {
    dprintf(2, "%s: error %d of the socket\n", path, errno);
    _exit(1);
  }
  sigset_t child_ends;
  sigemptyset(&child_ends);
  sigaddset(&child_ends, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_ends, NULL);
  int deaths = signalfd(-1, &child_ends, SFD_CLOEXEC | SFD_NONBLOCK);
  for (;;) {
    struct pollfd events[2 + CLIENT_LIMIT] = {{.fd = deaths, .events = POLLIN}};
    // Without a free place, the socket is left alone.
    events[1] = (struct pollfd){client_count < CLIENT_LIMIT ? listener : -1, POLLIN, 0};
    for (int index = 0; index < client_count; index++)
      events[2 + index] = (struct pollfd){clients[index].socket, POLLIN, 0};
    if (poll(events, 2 + client_count, -1) < 0) continue;
    // A client that was killed takes its program along.
    for (int index = 0; index < client_count; index++)
      if (events[2 + index].revents) kill(clients[index].child, SIGKILL);
    // Both change the order of the clients.
    if (events[0].revents)
      report_ends(deaths);
    else if (events[1].revents && start_program(listener, deaths))
      return;
  }
}

static int served_main(int count, char **words, char **environment) {
  if (!arguments) return program_main(count, words, environment);
  environ = variables;
  // Swift reads /proc/self/cmdline otherwise, which is that of the server.
  void (*override)(char **, int) = dlsym(RTLD_DEFAULT, "_swift_stdlib_overrideUnsafeArgvArgc");
  if (override) override(arguments, argument_count);
  return program_main(argument_count, arguments, variables);
}

int __libc_start_main(
  main_function *main, int count, char **words, void (*init)(void), void (*fini)(void),
  void (*linker_fini)(void), void *stack_end) {
  start_function *start = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
  program_main = main;
  return start(served_main, count, words, init, fini, linker_fini, stack_end);
}
