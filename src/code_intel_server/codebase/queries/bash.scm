(function_definition name: (word) @name) @definition.function
(program (declaration_command (variable_assignment name: (variable_name) @name) @definition.variable))
(program (variable_assignment name: (variable_name) @name) @definition.variable)
((command name: (command_name (word) @_alias) argument: (concatenation . (word) @name)) @definition.macro (#eq? @_alias "alias"))
(comment) @lead

;;; uses
(command name: (command_name (word) @call))
((command name: (command_name (word) @_source) argument: (_) @import.module) @import (#match? @_source "^(source|\\.)$"))
