((command (unit (identifier) @_keyword) . (unit (identifier) @name) (block) @body) @definition.class (#eq? @_keyword "class"))
((command (unit (identifier) @_keyword) . (block . (unit (identifier) @name)) @body) @definition.class (#eq? @_keyword "class"))
((command (unit (identifier) @_keyword) . (block . (unit (identifier) @name)) @body) @definition.interface (#match? @_keyword "^(interface|trait)$"))
((command (unit (identifier) @_keyword) . (block . (unit (identifier) @name)) @body) @definition.enum (#eq? @_keyword "enum"))
(command (unit (identifier)) . (block . (unit (func . (identifier) @name))) @body) @definition.function
(block (command . (unit (identifier)) . (unit (func . (identifier) @name)) .) @definition.method)
(line_comment) @lead
(block_comment) @lead

;;; uses
(func . (identifier) @call)
((command . (unit (identifier) @_import) . (unit) @import.module) @import (#eq? @_import "import"))
