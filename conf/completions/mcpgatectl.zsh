#compdef mcpgatectl
# Completion of mcpgatectl(1) for zsh.
local -a found
found=(${(f)"$(${words[1]} complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
if (( ${#found} )); then compadd -a found; else _files; fi
