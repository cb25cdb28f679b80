/* A stand-in for libnvidia-ml: two GPUs, the second divided (MIG). FAKE_NVML names a file with
   lines `use power temperature clock reasons`, one for each GPU; a line `hang` never answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { int index; int slice; } Device;
typedef struct { void *device; unsigned long long type, data; unsigned gi, ci; } Event;
static Device gpus[2] = {{0, -1}, {1, -1}}, slices[2] = {{1, 0}, {1, 1}};
static int xids = 1;

static void told(int index, double *values) {
    static const double ordinary[5] = {87, 250000, 61, 1410, 0};
    char line[256];
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    memcpy(values, ordinary, sizeof ordinary);
    for (int place = 0; file && fgets(line, sizeof line, file); place++) {
        if (!strncmp(line, "hang", 4)) for (;;) sleep(1000);
        if (place == index)
            sscanf(line, "%lf %lf %lf %lf %lf", values, values + 1, values + 2, values + 3, values + 4);
    }
    if (file) fclose(file);
}

static double value(void *device, int which) {
    double values[5];
    told(((Device *)device)->index, values);
    return values[which];
}

int nvmlInit_v2(void) { double unused[5]; told(0, unused); return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &gpus[index]; return 0; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
    Device *found = device;
    if (found->slice < 0) snprintf(text, size, "GPU-%d%d%d%d", found->index, found->index, found->index, found->index);
    else snprintf(text, size, "MIG-%d", found->slice);
    return 0;
}
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending) {
    *now = *pending = getenv("FAKE_MIG") ? ((Device *)device)->index == 1 : 0;
    return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) { *count = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **part) {
    if (index > 1) return 6; /* not found */
    *part = &slices[index];
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates) {
    if (getenv("FAKE_MIG") && ((Device *)device)->index == 1) return 3; /* not supported */
    rates[0] = (unsigned)value(device, 0);
    rates[1] = 10;
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory) {
    Device *found = device;
    memory[0] = found->slice < 0 ? 40ULL << 30 : 10ULL << 30;
    memory[2] = found->slice < 0 ? 12ULL << 30 : 3ULL << 30;
    memory[1] = memory[0] - memory[2];
    return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { *milliwatts = (unsigned)value(device, 1); return 0; }
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees) { *degrees = (unsigned)value(device, 2); return 0; }
int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *clock) { *clock = (unsigned)value(device, 3); return kind != 1; }
int nvmlDeviceGetMaxClockInfo(void *device, int kind, unsigned *clock) { *clock = 1410; return kind != 1; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
    *reasons = (unsigned long long)value(device, 4);
    return 0;
}
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count) {
    *count = ((Device *)device)->index == 0 ? 2 : 0;
    return kind != 1 || counter != 0;
}
int nvmlEventSetCreate(void **set) { *set = &xids; return 0; }
int nvmlDeviceRegisterEvents(void *device, unsigned long long kinds, void *set) { return kinds != 8; }
int nvmlEventSetWait_v2(void *set, Event *event, unsigned milliseconds) {
    if (!xids) return 10; /* timeout */
    xids = 0;
    memset(event, 0, sizeof *event);
    event->device = &gpus[1];
    event->type = 8;
    event->data = 79;
    return 0;
}
