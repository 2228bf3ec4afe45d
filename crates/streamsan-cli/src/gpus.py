"""Says which GPUs a program of this environment would find, as `key=value` lines. The driver is asked."""

import sys


def say(key: str, value: object) -> None:
    """Prints one fact."""
    print(key + "=" + str(value).replace("\n", " "))


def ask() -> None:
    """Says how many, which, and for which version of CUDA; or why there are none."""
    # The folder that `-c` puts in front is not where the program is.
    sys.path = [entry for entry in sys.path if entry]
    import ctypes

    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        say("gpu_trouble", "there is no CUDA driver (libcuda.so.1)")
        return
    number = ctypes.c_int()
    status = driver.cuInit(0)
    if status == 0:
        status = driver.cuDeviceGetCount(ctypes.byref(number))
    if status != 0 or number.value == 0:
        # 100 is CUDA_ERROR_NO_DEVICE.
        none = status in (0, 100)
        say("gpu_trouble", f"the CUDA driver {'finds no device' if none else f'answers error {status}'}")
        return
    say("gpu_count", number.value)
    name = ctypes.create_string_buffer(128)
    if driver.cuDeviceGetName(name, len(name), 0) == 0:
        say("gpu_name", name.value.decode(errors="replace"))
    if driver.cuDriverGetVersion(ctypes.byref(number)) == 0:
        say("gpu_driver", f"{number.value // 1000}.{number.value % 1000 // 10}")


ask()
