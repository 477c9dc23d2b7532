// SPDX-License-Identifier: Apache-2.0

/// The completion scripts for shells.
enum CompletionScript {
  /// The option that requests a completion script.
  static let request = "--generate-completion-script"

  /// Makes ArgumentParser's script safe for candidates that users or devices have named.
  ///
  /// Candidates such as marks, file names and device names may contain any character. No shell may
  /// expand them, neither when it offers them nor when the completed line is run.
  static func safe(_ script: String) -> String {
    if script.contains(bashRegistration) { return bash(script) }
    return script.replacing(zshFunction, with: quotingZshFunction)
  }

  /// Changes the script for bash in two ways.
  ///
  /// First, `compgen -W` would expand the candidates, so the script itself compares them with the
  /// word. Second, bash splits words at `:`, `=` and `@`, which the names of devices, modes and
  /// controls contain. The registered function joins the parts and completes the whole word. It
  /// then removes from each candidate the part that bash has already completed.
  private static func bash(_ script: String) -> String {
    script
      .replacing(
        #"__slowmo_add_completions -W "$(__slowmo_custom_complete "#,
        with: #"__slowmo_add_candidates "$(__slowmo_custom_complete "#
      )
      .replacing(bashRegistration, with: rejoiningRegistration)
  }

  private static let bashRegistration = "complete -o filenames -F _slowmo slowmo"

  private static let rejoiningRegistration = #"""
    # Adds the lines that begin with the current word; compgen -W would expand them.
    __slowmo_add_candidates() {
        local candidate
        while IFS='' read -r candidate; do
            [[ -n "${candidate}" && "${candidate}" == "${cur}"* ]] && COMPREPLY+=("${candidate}")
        done <<<"${1}"
    }

    __slowmo_whole_words() {
        local -r line="${COMP_LINE:0:COMP_POINT}"
        # Quoted words need bash's own splitting.
        if [[ "${line}" == *[\'\"\\]* ]]; then
            _slowmo "${@}"
            return
        fi
        local -a words
        read -ra words <<<"${line}"
        [[ "${line}" == *[[:space:]] ]] && words+=('')
        local -a COMP_WORDS=("${words[@]}")
        local -i COMP_CWORD=$((${#words[@]} - 1))
        local -r whole="${words[COMP_CWORD]}"
        # The part that bash replaces: it begins with the last @, or follows the last : or =.
        local part="${2}"
        [[ "${part}" == [:=] ]] && part=''
        _slowmo "${1}" "${whole}" "${words[COMP_CWORD - 1]}"
        local reply is_file=true
        for reply in "${COMPREPLY[@]}"; do
            [[ -e "${reply}" ]] || is_file=false
        done
        [[ "${#COMPREPLY[@]}" -eq 1 && "${COMPREPLY[0]}" == *[=:/] ]] && compopt -o nospace 2>/dev/null
        COMPREPLY=("${COMPREPLY[@]#"${whole%"${part}"}"}")
        "${is_file}" && return
        # Names of files are quoted by bash. Other candidates are quoted here; as file names, bash
        # would cut modes at their slash.
        compopt +o filenames 2>/dev/null
        local -i index
        for index in "${!COMPREPLY[@]}"; do
            [[ -z "${COMPREPLY[index]}" ]] || printf -v 'COMPREPLY[index]' %q "${COMPREPLY[index]}"
        done
    }

    complete -o filenames -F __slowmo_whole_words slowmo
    """#

  private static let zshFunction = "__slowmo_complete() {\n"

  /// The first lines of the function that offers candidates in zsh.
  ///
  /// zsh quotes exclamation marks only with `banghist`, which ArgumentParser's script turns off.
  private static let quotingZshFunction = zshFunction + "    setopt localoptions banghist\n"
}
