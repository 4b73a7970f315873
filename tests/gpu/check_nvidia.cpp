/* NVIDIA's own conversions, for check_host.cpp: its headers compile without nvcc. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <string.h>

unsigned short nvidia_bf16(float x)
{
    const __nv_bfloat16 rounded = __float2bfloat16_rn(x);
    unsigned short bits;
    memcpy(&bits, &rounded, sizeof bits);
    return bits;
}

float nvidia_half(unsigned short half)
{
    return __half2float(__half(__half_raw{ half }));
}
