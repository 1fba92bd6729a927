//! Kernel modules: which of them a guest takes along, in which order they are loaded, and the list by which
//! the guest finds them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::elf::{self, ModuleInfo};
use crate::{Error, Part};

/// The modules of a kernel, by name.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

/// A module that a guest takes along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) depends: Vec<String>,
    pub(crate) aliases: Vec<String>,
}

/// What is taken along of what was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// In an order in which they can be loaded.
    pub(crate) modules: Vec<Module>,
    /// What this kernel does not have.
    pub(crate) absent: Vec<String>,
}

impl Modules {
    /// The modules in a kernel's folder (`lib/modules/RELEASE`).
    pub(crate) fn read(folder: &Path, part: Part) -> Result<Modules, Error> {
        let mut modules = Modules::default();
        for file in module_files(folder)? {
            if let Some(stem) = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".ko"))
            {
                modules.files.insert(normal(stem), file);
            }
        }
        if modules.files.is_empty() {
            return Err(Error::Incomplete { part, what: "modules".to_owned() });
        }
        // Lines as `kernel/net/packet/af_packet.ko`.
        let list = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        let stem = |line: &str| Some(normal(Path::new(line).file_stem()?.to_str()?));
        modules.built_in = list.lines().filter_map(stem).collect();
        Ok(modules)
    }

    /// The file of a module.
    pub(crate) fn file(&self, name: &str) -> Option<&Path> {
        self.files.get(name).map(PathBuf::as_path)
    }

    /// The modules asked for, with what they need.
    pub(crate) fn take(&self, wanted: &[&str]) -> Result<Taken, Error> {
        self.take_by(wanted, &mut |name, file| {
            let bytes = fs::read(file).map_err(Error::file("reading", file))?;
            elf::module_info(&bytes).ok_or_else(|| Error::Unclear {
                doing: "reading the kernel's modules".to_owned(),
                what: format!("{name} says nothing of itself"),
            })
        })
    }

    fn take_by(
        &self,
        wanted: &[&str],
        info: &mut dyn FnMut(&str, &Path) -> Result<ModuleInfo, Error>,
    ) -> Result<Taken, Error> {
        let (mut taken, mut met) = (Taken::default(), BTreeSet::new());
        for name in wanted {
            let name = normal(name);
            if !self.files.contains_key(&name) && !self.built_in.contains(&name) {
                taken.absent.push(name);
                continue;
            }
            self.add(&name, info, &mut met, &mut taken.modules)?;
        }
        Ok(taken)
    }

    /// Adds a module after what it needs. One that needs itself, by way of others, is met once.
    fn add(
        &self,
        name: &str,
        info: &mut dyn FnMut(&str, &Path) -> Result<ModuleInfo, Error>,
        met: &mut BTreeSet<String>,
        modules: &mut Vec<Module>,
    ) -> Result<(), Error> {
        let Some(file) = self.files.get(name) else { return Ok(()) };
        if !met.insert(name.to_owned()) {
            return Ok(());
        }
        let said = info(name, file)?;
        let depends: Vec<String> = said.depends.iter().map(|name| normal(name)).collect();
        for other in depends.iter().cloned().chain(said.wants.iter().map(|name| normal(name))) {
            self.add(&other, info, met, modules)?;
        }
        modules.push(Module { name: name.to_owned(), depends, aliases: said.aliases });
        Ok(())
    }
}

/// The name of a module as the kernel has it: it takes `-` and `_` for one.
pub(crate) fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// All files below a folder whose names end as those of modules do, compressed or not.
pub(crate) fn module_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let (mut files, mut ahead) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = ahead.pop() {
        let entries = fs::read_dir(&folder).map_err(Error::file("reading", &folder))?;
        for entry in entries {
            let entry = entry.map_err(Error::file("reading", &folder))?;
            let kind = entry.file_type().map_err(Error::file("reading", &folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() {
                ahead.push(entry.path());
            } else if [".ko", ".ko.xz", ".ko.zst"].iter().any(|end| name.ends_with(end)) {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The list of modules in a guest: a line each, in the order in which they are loaded: name, what it needs,
/// other names; separated by tabs, and these by commas.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct List(Vec<Module>);

impl List {
    pub(crate) fn new(modules: Vec<Module>) -> List {
        List(modules)
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for Module { name, depends, aliases } in &self.0 {
            let _ = writeln!(text, "{name}\t{}\t{}", depends.join(","), aliases.join(","));
        }
        text
    }

    /// Reads the text back.
    pub(crate) fn read(text: &str) -> List {
        let list = |field: Option<&str>| -> Vec<String> {
            let names = field.unwrap_or_default().split(',');
            names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let module = |line: &str| {
            let mut fields = line.split('\t');
            let name = fields.next().filter(|name| !name.is_empty())?.to_owned();
            Some(Module { name, depends: list(fields.next()), aliases: list(fields.next()) })
        };
        List(text.lines().filter_map(module).collect())
    }

    /// The names of all, in the order in which they are loaded.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|module| module.name.as_str())
    }

    /// The names of what is to be loaded for a name or another name, in order. Empty if there is none such.
    pub(crate) fn for_request(&self, asked: &str) -> Vec<&str> {
        let name = normal(asked);
        let is_it = |module: &&Module| {
            module.name == name || module.aliases.iter().any(|alias| normal(alias) == name)
        };
        let mut order = Vec::new();
        for module in self.0.iter().filter(is_it) {
            self.with_needs(module, &mut order);
        }
        order
    }

    fn with_needs<'a>(&'a self, module: &'a Module, order: &mut Vec<&'a str>) {
        for need in &module.depends {
            let known = self.0.iter().find(|other| other.name == *need);
            // In the list what is needed stands before: that ends.
            if let Some(other) = known.filter(|other| other.name != module.name) {
                self.with_needs(other, order);
            }
        }
        if !order.contains(&module.name.as_str()) {
            order.push(&module.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(names: &[&str], built_in: &[&str]) -> Modules {
        Modules {
            files: names.iter().map(|name| ((*name).to_owned(), PathBuf::from(name))).collect(),
            built_in: built_in.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn info(name: &str, _: &Path) -> Result<ModuleInfo, Error> {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let (depends, wants, aliases) = match name {
            "wireguard" => ("udp-tunnel chacha", "crypto-none", "rtnl-link-wireguard"),
            "udp_tunnel" => ("ipv6", "", ""),
            "act_mpls" => ("", "mpls_gso", "net-act-mpls"),
            _ => ("", "", ""),
        };
        Ok(ModuleInfo { depends: list(depends), wants: list(wants), aliases: list(aliases) })
    }

    #[test]
    fn modules_come_after_what_they_need_and_once() {
        let all =
            modules(&["wireguard", "udp_tunnel", "chacha", "act_mpls", "mpls_gso"], &["ipv6"]);
        let wanted = ["wireguard", "act-mpls", "udp_tunnel", "ipv6", "no_such"];
        let taken = all.take_by(&wanted, &mut info).unwrap();
        let names: Vec<&str> = taken.modules.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(names, ["udp_tunnel", "chacha", "wireguard", "mpls_gso", "act_mpls"]);
        assert_eq!(taken.absent, ["no_such"]);
    }

    #[test]
    fn the_list_reads_back_and_finds_what_the_kernel_asks_for() {
        let all = modules(&["wireguard", "udp_tunnel", "chacha"], &["ipv6"]);
        let list = List::new(all.take_by(&["wireguard"], &mut info).unwrap().modules);
        assert_eq!(List::read(&list.text()), list);
        assert_eq!(list.names().collect::<Vec<_>>(), ["udp_tunnel", "chacha", "wireguard"]);
        let whole = ["udp_tunnel", "chacha", "wireguard"];
        assert_eq!(list.for_request("rtnl-link-wireguard"), whole);
        assert_eq!(list.for_request("wireguard"), whole);
        assert_eq!(list.for_request("udp-tunnel"), ["udp_tunnel"]);
        assert!(list.for_request("net-pf-44").is_empty());
        assert_eq!(List::read("\n\t\t\nx"), List::read("x\t\t\n"));
    }

    #[test]
    fn a_folder_of_modules_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let net = folder.path().join("kernel/net");
        fs::create_dir_all(&net).unwrap();
        fs::write(net.join("act-x.ko"), "").unwrap();
        fs::write(net.join("y.ko.xz"), "").unwrap();
        fs::write(folder.path().join("modules.builtin"), "kernel/net/packet/af_packet.ko\n")
            .unwrap();
        let modules = Modules::read(folder.path(), Part::CloudKernel).unwrap();
        assert_eq!(modules.file("act_x"), Some(net.join("act-x.ko").as_path()));
        assert!(modules.built_in.contains("af_packet") && modules.file("y").is_none());
        assert_eq!(module_files(folder.path()).unwrap().len(), 2);
    }
}
