# Completion of mcpgatectl(1) for fish.
complete -c mcpgatectl -a '(mcpgatectl complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
