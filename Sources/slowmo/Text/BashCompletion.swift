// SPDX-License-Identifier: Apache-2.0

/// The completion script for bash.
enum BashCompletion {
  /// The option that requests a completion script.
  static let request = "--generate-completion-script"

  /// Adds a function to ArgumentParser's script for bash.
  ///
  /// Scripts for other shells are returned unchanged. Bash splits words at `:`, `=` and `@`, which
  /// devices, modes and controls contain. The function joins the parts, completes the whole word,
  /// and removes from each candidate what bash already has.
  static func script(_ script: String) -> String {
    let registration = "complete -o filenames -F _slowmo slowmo"
    guard script.contains(registration) else { return script }
    return script.replacing(registration, with: rejoiningRegistration)
  }

  private static let rejoiningRegistration = #"""
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
        local part="${2}"
        [[ "${part}" == [:=@] ]] && part=''
        _slowmo "${1}" "${whole}" "${words[COMP_CWORD - 1]}"
        local reply is_file=true
        for reply in "${COMPREPLY[@]}"; do
            [[ -e "${reply}" ]] || is_file=false
        done
        # Names of files are quoted by bash; modes contain a slash and must stay as they are.
        "${is_file}" || compopt +o filenames 2>/dev/null
        [[ "${#COMPREPLY[@]}" -eq 1 && "${COMPREPLY[0]}" == *[=:/] ]] && compopt -o nospace 2>/dev/null
        COMPREPLY=("${COMPREPLY[@]#"${whole%"${part}"}"}")
    }

    complete -o filenames -F __slowmo_whole_words slowmo
    """#
}
