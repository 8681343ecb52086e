/* A stand-in for libnvidia-ml.so.1: the functions of NVIDIA's nvml.h that are called, with what NVML_STAND_IN says.
 *
 * NVML_STAND_IN holds words `name=value`, separated by blanks; `name:gpu=value` is for one GPU, `name:gpu.part=value`
 * for one link or counter. A value is a number, or error:N (the NVML return code), hang, slow (1.6 s), or crash.
 * With -DOLD_DRIVER the functions that came with newer drivers are left out.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long u64;
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
struct memory { u64 total, free, used; };
struct memory_v2 { unsigned version; u64 total, reserved, free, used; };
struct process { unsigned pid; u64 used; unsigned instance, compute; };
struct field { unsigned id, scope; long long at, took; unsigned type; int outcome; u64 value; };
struct fabric { unsigned char cluster[16]; int status; unsigned clique; unsigned char state; };
struct fabric_v { unsigned version; unsigned char cluster[16]; int status; unsigned clique; unsigned char state;
                  unsigned mask; unsigned char summary; };

static const char *entry(const char *name) {
    static char value[64];
    const char *all = getenv("NVML_STAND_IN");
    size_t length = strlen(name);
    const char *found = NULL;
    for (const char *word = all ? all : ""; *word; word += strcspn(word, " "), word += strspn(word, " "))
        if (!strncmp(word, name, length) && word[length] == '=') found = word + length + 1;
    if (!found) return NULL;
    snprintf(value, sizeof value, "%.*s", (int)strcspn(found, " "), found);
    return value;
}

/* The return code; *value is changed where the test gives a number. The most particular entry counts. */
static int ask(const char *name, int gpu, int part, u64 *value) {
    char key[128];
    const char *text = NULL;
    if (part >= 0) { snprintf(key, sizeof key, "%s:%d.%d", name, gpu, part); text = entry(key); }
    if (!text && gpu >= 0) { snprintf(key, sizeof key, "%s:%d", name, gpu); text = entry(key); }
    if (!text) text = entry(name);
    if (!text) return 0;
    if (!strcmp(text, "hang")) for (;;) pause();
    if (!strcmp(text, "slow")) { usleep(1600000); return 0; }
    if (!strcmp(text, "crash")) { signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); }
    if (!strncmp(text, "error:", 6)) return atoi(text + 6);
    if (value) *value = strtoull(text, NULL, 0);
    return 0;
}
static int gpu_of(void *handle) { return (int)(long)handle - 1; }
static int number(const char *name, void *handle, int part, u64 otherwise, unsigned *out) {
    u64 value = otherwise;
    int code = ask(name, gpu_of(handle), part, &value);
    if (!code) *out = (unsigned)value;
    return code;
}

int nvmlInit_v2(void) { return ask("nvmlInit", -1, -1, NULL); }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "something"; }
int nvmlSystemGetDriverVersion(char *text, unsigned length) {
    int code = ask("nvmlSystemGetDriverVersion", -1, -1, NULL);
    if (!code) snprintf(text, length, "570.86.15");
    return code;
}
static int cuda(const char *name, int *out) {
    u64 value = 12080;
    int code = ask(name, -1, -1, &value);
    *out = (int)value;
    return code;
}
int nvmlSystemGetCudaDriverVersion(int *out) { return cuda("nvmlSystemGetCudaDriverVersion", out); }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { return cuda("nvmlSystemGetCudaDriverVersion_v2", out); }
int nvmlDeviceGetCount_v2(unsigned *count) {
    u64 value = 2;
    int code = ask("nvmlDeviceGetCount", -1, -1, &value);
    *count = (unsigned)value;
    return code;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    *handle = (void *)(long)(index + 1);
    return ask("nvmlDeviceGetHandleByIndex", (int)index, -1, NULL);
}
int nvmlDeviceGetName(void *gpu, char *name, unsigned length) {
    snprintf(name, length, "NVIDIA H200");
    return ask("nvmlDeviceGetName", gpu_of(gpu), -1, NULL);
}
int nvmlDeviceGetUUID(void *gpu, char *uuid, unsigned length) {
    snprintf(uuid, length, "GPU-%d", gpu_of(gpu) + 1);
    return ask("nvmlDeviceGetUUID", gpu_of(gpu), -1, NULL);
}
int nvmlDeviceGetPciInfo_v3(void *gpu, struct pci *pci) {
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%X:00.0", 0x1b + gpu_of(gpu));
    return ask("nvmlDeviceGetPciInfo", gpu_of(gpu), -1, NULL);
}
int nvmlDeviceGetMemoryInfo(void *gpu, struct memory *memory) {
    u64 used = 700ull << 20;
    int code = ask("nvmlDeviceGetMemoryInfo", gpu_of(gpu), -1, &used);
    *memory = (struct memory){150754820096ull, 150754820096ull - used, used};
    return code;
}
int nvmlDeviceGetEccMode(void *gpu, unsigned *now, unsigned *later) {
    *later = 1;
    return number("nvmlDeviceGetEccMode", gpu, -1, 1, now);
}
int nvmlDeviceGetTotalEccErrors(void *gpu, unsigned type, unsigned counter, u64 *count) {
    *count = 0;
    if (type != 1) return 0;
    return ask("nvmlDeviceGetTotalEccErrors", gpu_of(gpu), (int)counter, count);
}
int nvmlDeviceGetRemappedRows(void *gpu, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    int code;
    *corrected = *uncorrected = *failed = 0;
    if ((code = number("nvmlDeviceGetRemappedRows", gpu, 0, 0, pending))) return code;
    return number("nvmlDeviceGetRemappedRows", gpu, 1, 0, failed);
}
int nvmlDeviceGetClockInfo(void *gpu, unsigned type, unsigned *mhz) {
    (void)type; return number("nvmlDeviceGetClockInfo", gpu, -1, 345, mhz);
}
int nvmlDeviceGetMaxClockInfo(void *gpu, unsigned type, unsigned *mhz) {
    (void)type; return number("nvmlDeviceGetMaxClockInfo", gpu, -1, 1980, mhz);
}
int nvmlDeviceGetPowerUsage(void *gpu, unsigned *milliwatt) {
    return number("nvmlDeviceGetPowerUsage", gpu, -1, 75500, milliwatt);
}
int nvmlDeviceGetEnforcedPowerLimit(void *gpu, unsigned *milliwatt) {
    return number("nvmlDeviceGetEnforcedPowerLimit", gpu, -1, 700000, milliwatt);
}
struct busy { unsigned gpu, memory; };
int nvmlDeviceGetUtilizationRates(void *gpu, struct busy *busy) {
    number("memoryBusy", gpu, -1, 0, &busy->memory);
    return number("nvmlDeviceGetUtilizationRates", gpu, -1, 0, &busy->gpu);
}
int nvmlDeviceGetTemperature(void *gpu, unsigned sensor, unsigned *celsius) {
    (void)sensor; return number("nvmlDeviceGetTemperature", gpu, -1, 31, celsius);
}
int nvmlDeviceGetCurrPcieLinkGeneration(void *gpu, unsigned *value) {
    return number("nvmlDeviceGetCurrPcieLinkGeneration", gpu, -1, 5, value);
}
int nvmlDeviceGetCurrPcieLinkWidth(void *gpu, unsigned *value) {
    return number("nvmlDeviceGetCurrPcieLinkWidth", gpu, -1, 16, value);
}
int nvmlDeviceGetComputeMode(void *gpu, unsigned *value) {
    return number("nvmlDeviceGetComputeMode", gpu, -1, 0, value);
}
int nvmlDeviceGetMaxPcieLinkGeneration(void *gpu, unsigned *value) {
    return number("nvmlDeviceGetMaxPcieLinkGeneration", gpu, -1, 5, value);
}
int nvmlDeviceGetMaxPcieLinkWidth(void *gpu, unsigned *value) {
    return number("nvmlDeviceGetMaxPcieLinkWidth", gpu, -1, 16, value);
}
int nvmlDeviceGetMigMode(void *gpu, unsigned *now, unsigned *later) {
    *later = 0;
    return number("nvmlDeviceGetMigMode", gpu, -1, 0, now);
}
int nvmlDeviceGetPersistenceMode(void *gpu, unsigned *value) {
    return number("nvmlDeviceGetPersistenceMode", gpu, -1, 1, value);
}
int nvmlDeviceGetCudaComputeCapability(void *gpu, int *major, int *minor) {
    unsigned value;
    int code = number("nvmlDeviceGetCudaComputeCapability", gpu, -1, 90, &value);
    if (!code) { *major = (int)value / 10; *minor = (int)value % 10; }
    return code;
}
int nvmlDeviceGetNvLinkState(void *gpu, unsigned link, unsigned *active) {
    u64 links = 18;
    ask("links", gpu_of(gpu), -1, &links);
    if (link >= links) return links ? 2 : 3;
    return number("nvmlDeviceGetNvLinkState", gpu, (int)link, 1, active);
}
/* A switch on bus C2, but for a GPU's `remote:gpu.link=BUS`. */
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *gpu, unsigned link, struct pci *pci) {
    u64 bus = 0xc2;
    int code = ask("remote", gpu_of(gpu), (int)link, &bus);
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", (unsigned)bus);
    return code;
}
int nvmlDeviceGetP2PStatus(void *gpu, void *peer, unsigned index, unsigned *status) {
    if (index) return 2;
    return number("nvmlDeviceGetP2PStatus", gpu, gpu_of(peer), 0, status);
}
static int processes(void *gpu, unsigned *count, struct process *found) {
    u64 pid = 0;
    int code = ask("processes", gpu_of(gpu), -1, &pid);
    unsigned room = *count;
    if (code) return code;
    *count = pid ? 1 : 0;
    if (!pid) return 0;
    if (!room) return 7;
    found[0] = (struct process){(unsigned)pid, 4ull << 30, ~0u, ~0u};
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v2(void *gpu, unsigned *count, struct process *found) {
    return processes(gpu, count, found);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *gpu, u64 *mask) {
    *mask = 1;
    return ask("reasons", gpu_of(gpu), -1, mask);
}
int nvmlDeviceGetFieldValues(void *gpu, int count, struct field *fields) {
    for (int i = 0; i < count; i++) {
#ifdef OLD_DRIVER
        fields[i].outcome = 2;
#else
        fields[i].value = 0;
        fields[i].outcome = fields[i].id == 230 ? ask("recovery", gpu_of(gpu), -1, &fields[i].value) : 2;
#endif
    }
    return 0;
}
#ifndef OLD_DRIVER
int nvmlDeviceGetMemoryInfo_v2(void *gpu, struct memory_v2 *memory) {
    u64 used = 4ull << 20;
    int code = ask("nvmlDeviceGetMemoryInfo", gpu_of(gpu), -1, &used);
    memory->total = 150754820096ull;
    memory->used = used;
    return code;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *gpu, unsigned *count, struct process *found) {
    return processes(gpu, count, found);
}
int nvmlDeviceGetCurrentClocksEventReasons(void *gpu, u64 *mask) {
    return nvmlDeviceGetCurrentClocksThrottleReasons(gpu, mask);
}
int nvmlDeviceGetGpuFabricInfoV(void *gpu, struct fabric_v *info) {
    u64 state = 3, status = 0, mask = 2, summary = 1, newest = 3;
    ask("fabric", gpu_of(gpu), 4, &newest);  /* the newest structure that this driver knows */
    if (info->version >> 24 > newest) return 25;  /* NVML_ERROR_ARGUMENT_VERSION_MISMATCH */
    int code = ask("fabric", gpu_of(gpu), 0, &state);
    if (code) return code;
    ask("fabric", gpu_of(gpu), 1, &status);
    ask("fabric", gpu_of(gpu), 2, &mask);
    ask("fabric", gpu_of(gpu), 3, &summary);
    u64 cluster = 0, clique = 0;
    ask("fabric", gpu_of(gpu), 5, &cluster);
    ask("fabric", gpu_of(gpu), 6, &clique);
    memset(info->cluster, (int)cluster, sizeof info->cluster);
    info->clique = (unsigned)clique;
    info->state = (unsigned char)state;
    info->status = (int)status;
    info->mask = (unsigned)mask;
    if (info->version >> 24 >= 3) info->summary = (unsigned char)summary;
    return 0;
}
#endif
