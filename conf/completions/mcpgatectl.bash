# Completion of mcpgatectl(1) for bash.
_mcpgatectl() {
    mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _mcpgatectl mcpgatectl
