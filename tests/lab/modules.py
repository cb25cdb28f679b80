"""A small tree of environment modules, so that `module load` works in jobs and login shells."""

from .world import World

TREE = "/opt/site/modules"
SOFTWARE = "/opt/site/software"

# name -> (environment it sets, modules it cannot be loaded with)
MODULES: dict[str, tuple[dict[str, str], str]] = {
    "python/3.11": ({"EBROOTPYTHON": f"{SOFTWARE}/python/3.11"}, ""),
    "gcc/8.3": ({"EBROOTGCC": f"{SOFTWARE}/gcc/8.3"}, ""),
    "cuda/11.2": ({"CUDA_HOME": f"{SOFTWARE}/cuda/11.2"}, "cuda"),
    "cuda/12.4": ({"CUDA_HOME": f"{SOFTWARE}/cuda/12.4"}, "cuda"),
    "openmpi/4.1": ({"EBROOTOPENMPI": f"{SOFTWARE}/openmpi/4.1"}, ""),
}


def install_modules(world: World) -> None:
    for name, (variables, conflict) in MODULES.items():
        world.write(f"{TREE}/{name}", modulefile(name, variables, conflict))
        world.path(f"{SOFTWARE}/{name}/bin").mkdir(parents=True)
    world.path(f"{SOFTWARE}/python/3.11/bin/python3").symlink_to("/usr/bin/python3")
    world.write("/etc/environment-modules/modulespath", TREE + "\n")
    # Debian's own file asks `ps` for the shell's name and gets "slurm_script" inside a job.
    world.write("/etc/profile.d/modules.sh", ". /usr/share/modules/init/bash\n")


def modulefile(name: str, variables: dict[str, str], conflict: str) -> str:
    lines = ["#%Module1.0", f'module-whatis "{name}"']
    if conflict:
        lines.append(f"conflict {conflict}")
    lines += [f"setenv {key} {value}" for key, value in variables.items()]
    lines.append(f"prepend-path PATH {SOFTWARE}/{name}/bin")
    return "\n".join(lines) + "\n"
