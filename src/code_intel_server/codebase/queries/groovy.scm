((command (unit (identifier) @_keyword) . (unit (identifier) @name) (block) @body) @definition.class (#eq? @_keyword "class"))
((command (unit (identifier) @_keyword) . (block . (unit (identifier) @name)) @body) @definition.class (#eq? @_keyword "class"))
((command (unit (identifier) @_keyword) . (block . (unit (identifier) @name)) @body) @definition.interface (#match? @_keyword "^(interface|trait)$"))
((command (unit (identifier) @_keyword) . (block . (unit (identifier) @name)) @body) @definition.enum (#eq? @_keyword "enum"))
((command (unit (identifier) @_word) . (block . (unit . (func . (identifier) @name) .)) @body) @definition.function (#not-match? @_word "^(new|return|throw|assert|else|in|case|yield)$"))
((block (command . (unit (identifier) @_word) . (unit . (func . (identifier) @name) .) .) @definition.method) (#not-match? @_word "^(new|return|throw|assert|else|in|case|yield)$"))
(line_comment) @lead
(block_comment) @lead

;;; uses
(func . (identifier) @call)
((command . (unit (identifier) @_import) . (unit) @import.module) @import (#eq? @_import "import"))
