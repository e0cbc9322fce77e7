# NVIDIA's headers are never needed: worker/*_api.h declare what is called.
# Where they are found, one more source compares the two.
set(GPULAUNCH_GPU_HEADERS AUTO CACHE STRING
    "Compare our declarations with cuda.h, nccl.h and nvml.h: AUTO, OFF")

# gpul_gpu_abi_check(SOURCE): compile SOURCE against the headers that exist.
function(gpul_gpu_abi_check source)
    if(GPULAUNCH_GPU_HEADERS STREQUAL OFF)
        return()
    endif()
    add_library(gpul_gpu_abi OBJECT ${source})
    target_link_libraries(gpul_gpu_abi PRIVATE gpul_options)
    foreach(header cuda nccl nvml)
        string(TOUPPER ${header} upper)
        find_path(GPULAUNCH_${upper}_INCLUDE ${header}.h
            HINTS ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES include)
        mark_as_advanced(GPULAUNCH_${upper}_INCLUDE)
        set(found ${GPULAUNCH_${upper}_INCLUDE})
        # nccl.h needs the headers of the CUDA runtime.
        if(NOT found OR (header STREQUAL nccl AND NOT
                EXISTS ${GPULAUNCH_CUDA_INCLUDE}/cuda_runtime.h))
            continue()
        endif()
        target_include_directories(gpul_gpu_abi SYSTEM PRIVATE ${found})
        target_compile_definitions(gpul_gpu_abi PRIVATE
            GPULAUNCH_HAVE_${upper}_H)
    endforeach()
endfunction()
