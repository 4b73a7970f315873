/* tests/gpu/declarations.cpp -- Our declarations of NVIDIA's functions beside their own: it
 * compiles or it doesn't. tests/repo/cuda_calls.sh compiles it where there is a cuda.h.
 *
 * Two types agree when they are of one size and both numbers or both pointers: their enums
 * are our ints, their handles our structs, and their addresses of one size with ours. */
#if __has_include(<cuda.h>)
#include <cuda.h>
#define HAVE_CUDA
#endif
#if __has_include(<nvrtc.h>)
#include <nvrtc.h>
#define HAVE_NVRTC
#endif
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define HAVE_CUBLASLT
#endif
#if __has_include(<nvml.h>)
#include <nvml.h>
#define HAVE_NVML
#endif

#include <cstddef>
#include <type_traits>

#define CU_STREAM_NON_BLOCKING OUR_CU_STREAM_NON_BLOCKING
extern "C" {
#include "runtime/device/cuda/cublaslt.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/nvml.h"
#include "runtime/device/cuda/nvrtc.h"
}
#undef CU_STREAM_NON_BLOCKING

template <class T>
constexpr bool is_number = std::is_integral<T>::value || std::is_enum<T>::value;

/* What two pointers point to: numbers of one size, pointers, or a struct or void each. */
template <class A, class B> constexpr bool pointees_agree()
{
    if constexpr (is_number<A> && is_number<B>)
        return sizeof(A) == sizeof(B);
    else
        return is_number<A> == is_number<B> || std::is_void<A>::value ||
               std::is_void<B>::value;
}

template <class A, class B> constexpr bool types_agree()
{
    if constexpr (std::is_void<A>::value || std::is_void<B>::value)
        return std::is_void<A>::value && std::is_void<B>::value;
    else if constexpr (std::is_pointer<A>::value && std::is_pointer<B>::value)
        return pointees_agree<std::remove_pointer_t<A>, std::remove_pointer_t<B>>();
    else
        return is_number<A> && is_number<B> && sizeof(A) == sizeof(B);
}

template <class F, class G> struct agree : std::false_type {
};
template <class R, class... A, class S, class... B> struct agree<R (*)(A...), S (*)(B...)> {
    template <int N = sizeof...(A)> static constexpr bool all()
    {
        if constexpr (N != sizeof...(B))
            return false;
        else
            return types_agree<R, S>() && (types_agree<A, B>() && ...);
    }
    static constexpr bool value = all();
};

#ifdef HAVE_CUDA
#define CHECK(name, arguments)                                                             \
    static_assert(agree<decltype(&::name), int(*) arguments>::value, #name);
BURIN_DRIVER_CALLS(CHECK)
#undef CHECK

#define SAME_PLACE(theirs, their_field, ours, our_field)                                   \
    static_assert(offsetof(theirs, their_field) == offsetof(ours, our_field), #our_field)

static_assert(sizeof(CUuuid) == sizeof(burin_cu_uuid), "uuid");
static_assert(sizeof(CUmemAllocationProp) == sizeof(burin_cu_memory), "memory");
SAME_PLACE(CUmemAllocationProp, type, burin_cu_memory, type);
SAME_PLACE(CUmemAllocationProp, requestedHandleTypes, burin_cu_memory, exported);
SAME_PLACE(CUmemAllocationProp, location, burin_cu_memory, location);
SAME_PLACE(CUmemAllocationProp, win32HandleMetaData, burin_cu_memory, windows);
SAME_PLACE(CUmemAllocationProp, allocFlags, burin_cu_memory, flags);
static_assert(sizeof(CUmemAccessDesc) == sizeof(burin_cu_access), "access");
SAME_PLACE(CUmemAccessDesc, flags, burin_cu_access, flags);

#define SAME(ours, theirs) static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(CU_OK, CUDA_SUCCESS);
SAME(CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(CU_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(CU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME(CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(CU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(CU_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
SAME(CU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(CU_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CU_UNSUPPORTED_LIMIT, CUDA_ERROR_UNSUPPORTED_LIMIT);
SAME(CU_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
SAME(CU_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(CU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(CU_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(CU_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME(CU_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
SAME(CU_NOT_PERMITTED, CUDA_ERROR_NOT_PERMITTED);
SAME(CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(CU_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME(CU_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(CU_CAPTURE_INVALIDATED, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME(CU_CAPTURE_UNMATCHED, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
SAME(CU_UNKNOWN, CUDA_ERROR_UNKNOWN);
SAME(CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(CU_MEMORY_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(CU_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(CU_GRANULE_LEAST, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME(CU_GRANULE_WISHED, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME(CU_DEVICE_MAX_SHARED_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME(CU_DEVICE_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CU_DEVICE_INTEGRATED, CU_DEVICE_ATTRIBUTE_INTEGRATED);
SAME(CU_DEVICE_MEMORY_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(CU_DEVICE_BUS_BITS, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(CU_DEVICE_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(CU_DEVICE_THREADS_PER_MULTIPROCESSOR,
     CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(CU_DEVICE_SM_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CU_DEVICE_SM_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CU_DEVICE_MAX_SHARED_OPT_IN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CU_DEVICE_HAS_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(CU_FUNCTION_MAX_THREADS, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CU_FUNCTION_STATIC_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CU_FUNCTION_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(CU_FUNCTION_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CU_LIMIT_STACK, CU_LIMIT_STACK_SIZE);
SAME(CU_LIMIT_PRINTF, CU_LIMIT_PRINTF_FIFO_SIZE);
SAME(CU_LIMIT_HEAP, CU_LIMIT_MALLOC_HEAP_SIZE);
SAME(OUR_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(CU_CAPTURE_THIS_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(CU_EVENT_TIMED, CU_EVENT_DEFAULT);
SAME(CU_EVENT_BLOCKING, CU_EVENT_BLOCKING_SYNC);
SAME(CU_EVENT_UNTIMED, CU_EVENT_DISABLE_TIMING);
#endif

#ifdef HAVE_NVRTC
#define CHECK(name, result, arguments)                                                     \
    static_assert(agree<decltype(&::name), result(*) arguments>::value, #name);
BURIN_NVRTC_CALLS(CHECK)
#undef CHECK
static_assert((int)NVRTC_OK == (int)NVRTC_SUCCESS, "success");
static_assert((int)NVRTC_OUT_OF_MEMORY == (int)NVRTC_ERROR_OUT_OF_MEMORY, "memory");
static_assert((int)NVRTC_COMPILATION == (int)NVRTC_ERROR_COMPILATION, "compilation");
#endif

#ifdef HAVE_CUBLASLT
#define CHECK(name, result, arguments)                                                     \
    static_assert(agree<decltype(&::name), result(*) arguments>::value, #name);
BURIN_CUBLASLT_CALLS(CHECK)
#undef CHECK
#define SAME_BLAS(ours, theirs) static_assert((int)(ours) == (int)(theirs), #theirs)
static_assert(
        sizeof(cublasLtMatmulAlgo_t) == sizeof(burin_cublaslt_algorithm), "algorithm");
static_assert(
        sizeof(cublasLtMatmulHeuristicResult_t) == sizeof(burin_cublaslt_found), "found");
static_assert(
        offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) ==
                offsetof(burin_cublaslt_found, workspace_bytes),
        "workspace");
static_assert(
        offsetof(cublasLtMatmulHeuristicResult_t, state) ==
                offsetof(burin_cublaslt_found, state),
        "state");
SAME_BLAS(CUBLASLT_OK, CUBLAS_STATUS_SUCCESS);
SAME_BLAS(CUBLASLT_ALLOC, CUBLAS_STATUS_ALLOC_FAILED);
SAME_BLAS(CUBLASLT_INVALID, CUBLAS_STATUS_INVALID_VALUE);
SAME_BLAS(CUBLASLT_UNSUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME_BLAS(CUBLASLT_F32, CUDA_R_32F);
SAME_BLAS(CUBLASLT_BF16, CUDA_R_16BF);
SAME_BLAS(CUBLASLT_SUMS_F32, CUBLAS_COMPUTE_32F);
SAME_BLAS(CUBLASLT_TRANSPOSED, CUBLAS_OP_T);
SAME_BLAS(CUBLASLT_PRODUCT_TRANSPOSES_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME_BLAS(CUBLASLT_LAYOUT_COLUMNS, CUBLASLT_MATRIX_LAYOUT_COLS);
SAME_BLAS(CUBLASLT_WISH_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME_BLAS(CUBLASLT_WISH_ALIGNED_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME_BLAS(CUBLASLT_WISH_ALIGNED_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME_BLAS(CUBLASLT_WISH_ALIGNED_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME_BLAS(CUBLASLT_WISH_ALIGNED_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
#endif

#ifdef HAVE_NVML
#define CHECK(name, result, arguments)                                                     \
    static_assert(agree<decltype(&::name), result(*) arguments>::value, #name);
BURIN_NVML_CALLS(CHECK)
#undef CHECK
static_assert(sizeof(nvmlMemory_v2_t) == sizeof(burin_nvml_memory), "memory");
static_assert((unsigned)nvmlMemory_v2 == BURIN_NVML_MEMORY, "version of memory");
static_assert(sizeof(nvmlProcessInfo_t) == sizeof(burin_nvml_process), "process");
static_assert((int)NVML_INSUFFICIENT_SIZE == (int)NVML_ERROR_INSUFFICIENT_SIZE, "size");
#endif
