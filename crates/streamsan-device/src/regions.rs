//! Which addresses are whose, and how much of each device is in use.

use std::collections::BTreeMap;

/// What sort of memory a region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// Memory of this device.
    Device(u32),
    /// Memory of this device, mapped into reserved addresses.
    Mapped(u32),
    /// Page-locked host memory that we allocated.
    HostAllocated,
    /// The program's own host memory, page-locked by registering it.
    HostRegistered,
}

impl RegionKind {
    /// Whose device memory it is.
    pub fn device(self) -> Option<u32> {
        match self {
            Self::Device(device) | Self::Mapped(device) => Some(device),
            Self::HostAllocated | Self::HostRegistered => None,
        }
    }
}

/// One allocation or registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub start: usize,
    /// Bytes.
    pub size: usize,
    /// What sort.
    pub kind: RegionKind,
    /// The device that was current when it was made.
    pub device: u32,
    /// The flags that it was made with.
    pub flags: u32,
}

/// All regions, and the use of each device's memory.
#[derive(Debug, Default)]
pub struct Regions {
    by_start: BTreeMap<usize, Region>,
    used: Vec<u64>,
    page_locked: u64,
}

/// Device memory is given out and counted in pieces of this many bytes.
pub const GRANULE: u64 = 512;

fn rounded(size: usize) -> u64 {
    (size as u64).div_ceil(GRANULE).saturating_mul(GRANULE)
}

impl Regions {
    /// No regions.
    pub const fn new() -> Self {
        Self { by_start: BTreeMap::new(), used: Vec::new(), page_locked: 0 }
    }

    /// Bytes in use on a device.
    pub fn used(&self, device: u32) -> u64 {
        self.used.get(device as usize).copied().unwrap_or(0)
    }

    /// Sets `size` bytes of a device aside, if no more than `limit` are then in use.
    pub fn reserve(&mut self, device: u32, size: usize, limit: u64) -> bool {
        let total = self.used(device).saturating_add(rounded(size));
        if total > limit {
            return false;
        }
        let index = device as usize;
        if self.used.len() <= index {
            self.used.resize(index + 1, 0);
        }
        self.used[index] = total;
        true
    }

    /// Gives back what [`Regions::reserve`] set aside.
    pub fn release(&mut self, device: u32, size: usize) {
        if let Some(used) = self.used.get_mut(device as usize) {
            *used = used.saturating_sub(rounded(size));
        }
    }

    /// Bytes of host memory that are page-locked.
    pub fn page_locked(&self) -> u64 {
        self.page_locked
    }

    /// Adds a region.
    pub fn insert(&mut self, region: Region) {
        if region.kind.device().is_none() {
            self.page_locked += region.size as u64;
        }
        self.by_start.insert(region.start, region);
    }

    /// Takes out the region that starts at `start`, if it is of such a kind.
    pub fn remove(&mut self, start: usize, is_kind: impl FnOnce(RegionKind) -> bool) -> Option<Region> {
        if !is_kind(self.by_start.get(&start)?.kind) {
            return None;
        }
        let region = self.by_start.remove(&start)?;
        if region.kind.device().is_none() {
            self.page_locked -= region.size as u64;
        }
        Some(region)
    }

    /// The region that holds this address.
    pub fn find(&self, address: usize) -> Option<Region> {
        let (_, region) = self.by_start.range(..=address).next_back()?;
        (address - region.start < region.size).then_some(*region)
    }

    /// Whether `start .. start + size` lies in memory of one device: in one region, or in mapped ones side by side.
    pub fn is_device_memory(&self, start: usize, size: usize) -> bool {
        let Some(end) = start.checked_add(size) else { return false };
        let Some(first) = self.find(start) else { return false };
        let Some(device) = first.kind.device() else { return false };
        let mut reached = first.start + first.size;
        while reached < end {
            match self.by_start.get(&reached) {
                Some(next) if next.kind == RegionKind::Mapped(device) => reached += next.size,
                _ => return false,
            }
        }
        true
    }

    /// A region that shares a byte with `start .. start + size`.
    pub fn overlapping(&self, start: usize, size: usize) -> Option<Region> {
        let end = start.saturating_add(size);
        let (_, region) = self.by_start.range(..end).next_back()?;
        (region.start + region.size > start).then_some(*region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: usize, size: usize, kind: RegionKind) -> Region {
        Region { start, size, kind, device: 0, flags: 0 }
    }

    #[test]
    fn memory_past_the_limit_is_refused_and_comes_back() {
        let mut regions = Regions::new();
        assert!(regions.reserve(0, 1000, 2048), "1000 bytes take two granules");
        assert_eq!(regions.used(0), 1024);
        assert!(regions.reserve(0, 1024, 2048));
        assert!(!regions.reserve(0, 1, 2048));
        assert!(regions.reserve(1, 2048, 2048), "each device has its own");
        regions.release(0, 1000);
        assert!(regions.reserve(0, 1, 2048));
        assert!(!regions.reserve(0, usize::MAX, 2048));
    }

    #[test]
    fn page_locked_memory_is_counted() {
        let mut regions = Regions::new();
        regions.insert(region(100, 10, RegionKind::HostRegistered));
        regions.insert(region(200, 20, RegionKind::HostAllocated));
        regions.insert(region(300, 30, RegionKind::Device(0)));
        assert_eq!(regions.page_locked(), 30);
        assert!(regions.remove(100, |kind| kind == RegionKind::HostRegistered).is_some());
        assert!(regions.remove(300, |kind| kind == RegionKind::Device(0)).is_some());
        assert_eq!(regions.page_locked(), 20);
    }

    #[test]
    fn an_address_is_found_in_its_region_only() {
        let mut regions = Regions::new();
        regions.insert(region(100, 10, RegionKind::Device(1)));
        regions.insert(region(200, 10, RegionKind::HostRegistered));
        assert_eq!(regions.find(99), None);
        assert_eq!(regions.find(100).map(|found| found.kind), Some(RegionKind::Device(1)));
        assert_eq!(regions.find(109).map(|found| found.kind), Some(RegionKind::Device(1)));
        assert_eq!(regions.find(110), None);
        assert_eq!(regions.find(205).map(|found| found.start), Some(200));
    }

    #[test]
    fn device_memory_goes_on_over_mapped_regions_only() {
        let mut regions = Regions::new();
        for (start, kind) in [
            (100, RegionKind::Mapped(0)),
            (110, RegionKind::Mapped(0)),
            (120, RegionKind::Mapped(1)),
            (200, RegionKind::Device(0)),
            (210, RegionKind::Device(0)),
            (300, RegionKind::HostAllocated),
        ] {
            regions.insert(region(start, 10, kind));
        }
        assert!(regions.is_device_memory(105, 15));
        assert!(!regions.is_device_memory(105, 16), "another device's");
        assert!(regions.is_device_memory(200, 10));
        assert!(!regions.is_device_memory(200, 11), "another allocation");
        assert!(!regions.is_device_memory(300, 1));
        assert!(!regions.is_device_memory(99, 1));
        assert!(!regions.is_device_memory(105, usize::MAX));
    }

    #[test]
    fn overlap_is_seen_from_both_sides() {
        let mut regions = Regions::new();
        regions.insert(region(100, 10, RegionKind::HostRegistered));
        assert!(regions.overlapping(90, 10).is_none());
        assert!(regions.overlapping(90, 11).is_some());
        assert!(regions.overlapping(95, 50).is_some());
        assert!(regions.overlapping(109, 1).is_some());
        assert!(regions.overlapping(110, 10).is_none());
    }

    #[test]
    fn only_memory_of_the_right_kind_can_be_taken_out() {
        let mut regions = Regions::new();
        regions.insert(region(100, 10, RegionKind::HostAllocated));
        assert_eq!(regions.remove(100, |kind| matches!(kind, RegionKind::Device(_))), None);
        assert_eq!(regions.remove(101, |_| true), None);
        assert!(regions.remove(100, |kind| kind == RegionKind::HostAllocated).is_some());
        assert_eq!(regions.find(100), None);
    }
}
