/* Preloaded before the fake NCCL: its Unix sockets with abstract names become files in $FAKENCCL_FOLDER.
   Abstract names are those of one network namespace (unix(7)), and the nodes of the lab are several. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

typedef int (*call)(int, const struct sockaddr *, socklen_t);

static int with_path(const char *name, int socket, const struct sockaddr *address, socklen_t length) {
    call real = (call)dlsym(RTLD_NEXT, name);
    const struct sockaddr_un *given = (const struct sockaddr_un *)address;
    const char *folder = getenv("FAKENCCL_FOLDER");
    size_t known = offsetof(struct sockaddr_un, sun_path) + 1;
    if (!folder || length <= known || given->sun_family != AF_UNIX || strncmp(given->sun_path + 1, "fakenccl-", 9))
        return real(socket, address, length);
    struct sockaddr_un file = {.sun_family = AF_UNIX};
    snprintf(file.sun_path, sizeof file.sun_path, "%s/%.*s", folder, (int)(length - known), given->sun_path + 1);
    return real(socket, (struct sockaddr *)&file, sizeof file);
}

int bind(int socket, const struct sockaddr *address, socklen_t length) {
    return with_path("bind", socket, address, length);
}

int connect(int socket, const struct sockaddr *address, socklen_t length) {
    return with_path("connect", socket, address, length);
}
