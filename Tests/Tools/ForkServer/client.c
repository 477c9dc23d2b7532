// SPDX-License-Identifier: Apache-2.0
// Runs a program in a fork server:
//
//     client SOCKET PROGRAM [ARGUMENT ...]
//
// The program gets the descriptors 0 to 2, working directory, environment, umask, limits and signals of the
// client, which ends as the program does. Without a server, the client becomes the program.
#define _GNU_SOURCE
#include "request.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void add(char *const *strings, uint32_t *count, struct request *request) {
  for (; strings[*count]; ++*count) request->byte_count += strlen(strings[*count]) + 1;
}

static struct request make_request(char **arguments) {
  struct request request = {.file_mode_mask = umask(0)};
  add(arguments, &request.argument_count, &request);
  add(environ, &request.variable_count, &request);
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, NULL, &blocked);
  for (int number = 1; number <= LAST_SIGNAL; number++) {
    uint64_t bit = UINT64_C(1) << (number - 1);
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
      request.ignored_signals |= bit;
    if (sigismember(&blocked, number) == 1) request.blocked_signals |= bit;
  }
  for (int resource = 0; resource < RLIM_NLIMITS; resource++)
    getrlimit(resource, &request.limits[resource]);
  return request;
}

static int send_request(int server, const struct request *request, char **arguments) {
  int descriptors[DESCRIPTOR_COUNT] = {0, 1, 2, open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  char control[CMSG_SPACE(sizeof descriptors)] = {0};
  struct iovec part = {(void *)request, sizeof *request};
  struct msghdr message = {
    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptors);
  memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
  if (sendmsg(server, &message, 0) != sizeof *request) return -1;

  char *strings = malloc(request->byte_count), *end = strings;
  for (char **argument = arguments; *argument; argument++) end = stpcpy(end, *argument) + 1;
  for (char **variable = environ; *variable; variable++) end = stpcpy(end, *variable) + 1;
  for (char *next = strings; next < end;) {
    ssize_t sent = write(server, next, end - next);
    if (sent <= 0) return -1;
    next += sent;
  }
  return 0;
}

int main(int argument_count, char **arguments) {
  if (argument_count < 3) {
    fputs("usage: client SOCKET PROGRAM [ARGUMENT ...]\n", stderr);
    return 64;
  }
  int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = socket_address(arguments[1]);
  arguments += 2;
  if (connect(server, (struct sockaddr *)&address, sizeof address) < 0) {
    execvp(*arguments, arguments);
    perror(*arguments);
    return 127;
  }
  struct request request = make_request(arguments);
  int status;
  if (send_request(server, &request, arguments) < 0) {
    perror("the fork server");
    return 126;
  }
  // The other end of a pipe sees its end when the program closes it, not when the client ends.
  for (int descriptor = 0; descriptor < 2; descriptor++) close(descriptor);
  if (read(server, &status, sizeof status) != sizeof status) {
    perror("the fork server");
    return 126;
  }
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}
