(function_def (function_command (argument_list . (argument) @name)) (body)? @body) @definition.function
(macro_def (macro_command (argument_list . (argument) @name)) (body)? @body) @definition.macro
((normal_command (identifier) @_command (argument_list . (argument) @name)) @definition.target (#match? @_command "^(?i:add_executable|add_library|add_custom_target|add_test)$") (#not-match? @name "[$]"))
((normal_command (identifier) @_command (argument_list . (argument) @name)) @definition.variable (#match? @_command "^(?i:set|option)$"))
((normal_command (identifier) @_command (argument_list . (argument) @name)) @definition.module (#match? @_command "^(?i:project)$"))
(line_comment) @lead
(bracket_comment) @lead

;;; uses
(normal_command (identifier) @call)
((normal_command (identifier) @_command (argument_list . (argument) @import.module)) @import (#match? @_command "^(?i:include|find_package|add_subdirectory)$"))
