//! The few calls of the CUDA driver that keep a card busy, through `libcuda.so.1`; no toolkit.
//!
//! All unsafe code of the load is here. Invariants: a [`Busy`] is made and used by one thread, on
//! which its context is current; the library stays loaded for the life of the process, as the
//! driver wants it.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    ptr,
    time::{Duration, Instant},
};

use libloading::Library;

/// The kernel, as text: the driver translates it for whatever card there is.
const KERNEL: &CStr = {
    const TEXT: &str = concat!(include_str!("burn.ptx"), "\0");
    match CStr::from_bytes_with_nul(TEXT.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the kernel's text holds a NUL"),
    }
};
const THREADS: c_uint = 256;
/// Blocks for each multiprocessor: enough to fill it.
const BLOCKS: c_uint = 8;
const MULTIPROCESSORS: c_int = 16;
/// What one launch should take: how well the end of the work is known.
const LAUNCH: Duration = Duration::from_millis(2);

/// The driver's functions, with the types of its header.
struct Calls {
    init: unsafe extern "C" fn(c_uint) -> c_int,
    error_name: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
    device_by_pci: unsafe extern "C" fn(*mut c_int, *const c_char) -> c_int,
    attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int,
    retain: unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int,
    release: unsafe extern "C" fn(c_int) -> c_int,
    set_current: unsafe extern "C" fn(*mut c_void) -> c_int,
    load: unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> c_int,
    function: unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> c_int,
    launch: Launch,
    synchronize: unsafe extern "C" fn() -> c_int,
}

type Launch = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> c_int;

/// A card that this thread can keep busy.
pub struct Busy {
    calls: Calls,
    device: c_int,
    function: *mut c_void,
    blocks: c_uint,
    rounds: u32,
}

impl Busy {
    /// The card at that PCI address, with launches of about two milliseconds.
    #[allow(unsafe_code)]
    pub fn on(library: &str, pci: &str) -> Result<Self, String> {
        let calls = Calls::of(library)?;
        let pci = CString::new(pci).map_err(|error| error.to_string())?;
        let (mut device, mut processors) = (0, 0);
        let (mut context, mut module, mut function) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: the functions have the types of the driver's header; every pointer is to a local
        // that lives past the call, or to a text that ends in NUL; the context is current on this
        // thread before anything is loaded into it.
        unsafe {
            calls.check("cuInit", (calls.init)(0))?;
            let by_pci = (calls.device_by_pci)(&mut device, pci.as_ptr());
            calls.check("cuDeviceGetByPCIBusId", by_pci)?;
            let attribute = (calls.attribute)(&mut processors, MULTIPROCESSORS, device);
            calls.check("cuDeviceGetAttribute", attribute)?;
            let retained = (calls.retain)(&mut context, device);
            calls.check("cuDevicePrimaryCtxRetain", retained)?;
            calls.check("cuCtxSetCurrent", (calls.set_current)(context))?;
            calls.check("cuModuleLoadData", (calls.load)(&mut module, KERNEL.as_ptr().cast()))?;
            let found = (calls.function)(&mut function, module, c"burn".as_ptr());
            calls.check("cuModuleGetFunction", found)?;
        }
        let blocks = c_uint::try_from(processors.max(1)).unwrap_or(1) * BLOCKS;
        let mut busy = Self { calls, device, function, blocks, rounds: 1 << 10 };
        busy.fit()?;
        Ok(busy)
    }

    /// Finds how many rounds a launch of the wanted length has, with the clocks up.
    fn fit(&mut self) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(300) {
            let launched = Instant::now();
            self.launch()?;
            self.wait()?;
            let took_s = launched.elapsed().as_secs_f64().max(1e-6);
            let factor = (LAUNCH.as_secs_f64() / took_s).clamp(0.5, 8.0);
            self.rounds = (f64::from(self.rounds) * factor).clamp(64.0, 1e9) as u32;
        }
        Ok(())
    }

    /// Puts one launch into the card's queue.
    #[allow(unsafe_code)]
    pub fn launch(&self) -> Result<(), String> {
        let (mut out, mut rounds) = (0u64, self.rounds);
        let mut arguments: [*mut c_void; 2] =
            [ptr::from_mut(&mut out).cast(), ptr::from_mut(&mut rounds).cast()];
        // SAFETY: the function was found in a module of the context that is current on this thread
        // (a `Busy` is not `Send`); its two arguments have the kernel's types and are copied by the
        // call; the kernel never writes to `out`.
        let code = unsafe {
            (self.calls.launch)(
                self.function,
                self.blocks,
                1,
                1,
                THREADS,
                1,
                1,
                0,
                ptr::null_mut(),
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.calls.check("cuLaunchKernel", code)
    }

    /// Waits until all launches are done.
    #[allow(unsafe_code)]
    pub fn wait(&self) -> Result<(), String> {
        // SAFETY: takes nothing; this thread has a current context.
        let code = unsafe { (self.calls.synchronize)() };
        self.calls.check("cuCtxSynchronize", code)
    }
}

impl Drop for Busy {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the primary context of this device was retained once by this value.
        unsafe { (self.calls.release)(self.device) };
    }
}

impl Calls {
    #[allow(unsafe_code)]
    fn of(name: &str) -> Result<Self, String> {
        // SAFETY: loading the CUDA driver runs its initialisers, which is what it is made for.
        let library = unsafe { Library::new(name) }.map_err(|error| error.to_string())?;
        // The driver has threads of its own, and must not be unloaded under them.
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: each type is that of the function in the driver's header (cuda.h), and the
        // library stays loaded.
        unsafe {
            Ok(Self {
                init: symbol(library, c"cuInit")?,
                error_name: symbol(library, c"cuGetErrorName")?,
                device_by_pci: symbol(library, c"cuDeviceGetByPCIBusId")?,
                attribute: symbol(library, c"cuDeviceGetAttribute")?,
                retain: symbol(library, c"cuDevicePrimaryCtxRetain")?,
                release: symbol(library, c"cuDevicePrimaryCtxRelease_v2")
                    .or_else(|_| symbol(library, c"cuDevicePrimaryCtxRelease"))?,
                set_current: symbol(library, c"cuCtxSetCurrent")?,
                load: symbol(library, c"cuModuleLoadData")?,
                function: symbol(library, c"cuModuleGetFunction")?,
                launch: symbol(library, c"cuLaunchKernel")?,
                synchronize: symbol(library, c"cuCtxSynchronize")?,
            })
        }
    }

    #[allow(unsafe_code)]
    fn check(&self, call: &str, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        let mut name = ptr::null();
        // SAFETY: the pointer is to a local; the driver puts a static text there, or nothing.
        let text = unsafe {
            let known = (self.error_name)(code, &mut name) == 0 && !name.is_null();
            known.then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
        };
        Err(format!("{call}: {}", text.unwrap_or_else(|| format!("error {code}"))))
    }
}

/// A function of the library.
///
/// # Safety
/// `T` is the function's type.
#[allow(unsafe_code)]
unsafe fn symbol<T: Copy>(library: &Library, name: &CStr) -> Result<T, String> {
    // SAFETY: by this function's own contract.
    let symbol = unsafe { library.get::<T>(name.to_bytes_with_nul()) };
    symbol.map(|symbol| *symbol).map_err(|error| error.to_string())
}
