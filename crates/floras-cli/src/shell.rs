//! `floras completions` and `floras man`: files for the shell and for `man`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Arg, Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use floras_sim::{PRESETS, SimError, create_directory};

use crate::command::Arguments;
use crate::failure::Failure;

/// The commands that take the name of a preset.
const WITH_PRESETS: [&str; 6] = ["run", "sweep", "account", "calibrate", "audit", "theory"];

/// Options of `floras completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras completions bash > ~/.local/share/bash-completion/completions/floras
  floras completions zsh > ~/.zfunc/_floras
  floras completions fish > ~/.config/fish/completions/floras.fish")]
pub(crate) struct Completions {
    /// The shell to print completions for.
    #[arg(value_enum)]
    shell: Shell,
}

/// Where to write the man pages.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras man | man -l -                     read the page of the program
  floras man ~/.local/share/man/man1        install it with a page per command")]
pub(crate) struct ManPages {
    /// Write one page per command to this directory; without it, the page of the program is printed.
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Prints the completions of a shell.
pub(crate) fn completions(options: &Completions) -> Result<(), Failure> {
    let (mut script, mut command) = (Vec::new(), Arguments::command());
    // bash offers files besides possible values; the other shells would offer the presets alone.
    if options.shell == Shell::Bash {
        for name in WITH_PRESETS {
            command = command.mut_subcommand(name, |command| command.mut_arg("experiment", with_presets));
        }
    }
    clap_complete::generate(options.shell, &mut command, "floras", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(())
}

/// Lists the presets as the values of an argument.
fn with_presets(argument: Arg) -> Arg {
    argument.value_parser(PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>())
}

/// Prints the page of the program, or writes all pages.
pub(crate) fn man_pages(options: &ManPages) -> Result<(), Failure> {
    let command = Arguments::command();
    let Some(directory) = &options.directory else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        io::stdout().lock().write_all(&page)?;
        return Ok(());
    };
    create_directory(directory)?;
    clap_mangen::generate_to(command, directory).map_err(SimError::file("write", directory))?;
    writeln!(io::stdout(), "man pages       {}", directory.display())?;
    Ok(())
}
