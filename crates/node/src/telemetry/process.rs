//! The usual `process_` metrics of Prometheus clients on Linux, read from /proc at scrape time.
//!
//! Values that cannot be read are omitted; the other metrics are worth having without them.

use std::fs;
use std::io::{BufRead as _, BufReader};

use prometheus::core::Collector;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::sampled::{Series, sampled};

pub(super) fn collector() -> Result<impl Collector + 'static, prometheus::Error> {
    // Read once: the time of boot in /proc/stat moves when the wall clock is set.
    let start = start_seconds();
    sampled(SERIES, move || {
        let stat = Stat::read();
        let of_stat = |value: fn(&Stat) -> f64| stat.as_ref().map(value);
        [
            of_stat(|stat| stat.cpu_ticks as f64 / clock_ticks_per_second() as f64),
            of_stat(|stat| stat.threads as f64),
            of_stat(|stat| stat.virtual_bytes as f64),
            of_stat(|stat| stat.resident_pages as f64 * page_size() as f64),
            start,
            open_files(),
            getrlimit(Resource::Nofile).current.map(|limit| limit as f64),
        ]
    })
}

/// Some fields of `/proc/self/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    cpu_ticks: u64,
    threads: u64,
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn read() -> Option<Self> {
        Self::parse(&fs::read("/proc/self/stat").ok()?)
    }

    fn parse(line: &[u8]) -> Option<Self> {
        // The second field is the program's name in parentheses. It may contain spaces, parentheses and any bytes.
        let end_of_name = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(line.get(end_of_name + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // By the numbers of proc_pid_stat(5), where the first field after the name is the third.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let (user, system) = (field(14)?, field(15)?);
        Some(Self {
            cpu_ticks: user.saturating_add(system),
            threads: field(20)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// Returns the start of this process, in seconds since 1970. Whole ones, because the time of boot has no fraction.
fn start_seconds() -> Option<f64> {
    let lines = BufReader::new(fs::File::open("/proc/stat").ok()?).lines();
    let boot =
        lines.map_while(Result::ok).find_map(|line| line.strip_prefix("btime ")?.parse::<u64>().ok())?;
    let since_boot = Stat::read()?.start_ticks.checked_div(clock_ticks_per_second())?;
    Some(boot.saturating_add(since_boot) as f64)
}

fn open_files() -> Option<f64> {
    // Since Linux 6.2 the size of the folder is their number; before, it is 0.
    let size = fs::metadata("/proc/self/fd").ok()?.len();
    if size > 0 {
        return Some(size as f64);
    }
    // One of them is the folder, which is open while it is read.
    let listed = fs::read_dir("/proc/self/fd").ok()?.count();
    Some(listed.saturating_sub(1) as f64)
}

const SERIES: [Series; 7] = [
    Series::counter("process_cpu_seconds_total", "CPU time of user and system, in seconds."),
    Series::gauge("process_threads", "Threads of the process."),
    Series::gauge("process_virtual_memory_bytes", "Virtual memory, in bytes."),
    Series::gauge("process_resident_memory_bytes", "Resident memory, in bytes."),
    Series::gauge("process_start_time_seconds", "When the process began, in seconds since 1970."),
    Series::gauge("process_open_fds", "Open file descriptors."),
    Series::gauge("process_max_fds", "The most file descriptors that may be open."),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(collector: &impl Collector, name: &str) -> Option<f64> {
        let families = collector.collect();
        let family = families.iter().find(|family| family.name() == name)?;
        let metric = family.get_metric().first()?;
        Some(metric.get_gauge().get_value())
    }

    /// The first number of the line of /proc/self/FILE that begins with `name`.
    fn in_proc(file: &str, name: &str) -> f64 {
        let text = fs::read_to_string(format!("/proc/self/{file}")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_ascii_whitespace().next().unwrap().parse().unwrap()
    }

    #[test]
    fn values_are_those_of_this_process() {
        let collector = collector().unwrap();
        let ours = |name: &str| collected(&collector, name).unwrap();
        // Other tests start threads and open files meanwhile, so the two need not agree at the first look.
        let agree = |name: &str, theirs: &dyn Fn() -> f64| {
            let seen = (0..10_000).any(|_| ours(name) == theirs());
            assert!(seen, "{name}: {} and {}", ours(name), theirs());
        };
        agree("process_threads", &|| in_proc("status", "Threads:"));
        agree("process_virtual_memory_bytes", &|| in_proc("status", "VmSize:") * 1024.0);
        agree("process_open_fds", &|| fs::read_dir("/proc/self/fd").unwrap().count() as f64 - 1.0);
        agree("process_max_fds", &|| in_proc("limits", "Max open files"));
        // The kernel updates the pages in `stat` late, those in `status` at once.
        let (resident, status) =
            (ours("process_resident_memory_bytes"), in_proc("status", "VmRSS:") * 1024.0);
        assert!((0.5..2.0).contains(&(resident / status)), "{resident} and {status}");
    }

    #[test]
    fn a_name_may_contain_anything() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 700 42 13 14 20 0 9 0 5000 123456 789 18446744073709551615";
        let expected = Stat {
            cpu_ticks: 742,
            threads: 9,
            start_ticks: 5000,
            virtual_bytes: 123_456,
            resident_pages: 789,
        };
        for name in [&b"weir"[..], b"a) S 1 2 (b", b"\xff \n)"] {
            let line = [b"17 (", name, b") ", rest.as_bytes()].concat();
            assert_eq!(Stat::parse(&line).as_ref(), Some(&expected));
        }
        for broken in [&b""[..], b"17 (weir", b"17 (weir) S 1 2", b"17 (weir) S x\xff"] {
            assert_eq!(Stat::parse(broken), None);
        }
    }
}
