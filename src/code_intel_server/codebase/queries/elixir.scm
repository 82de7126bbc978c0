((call target: (identifier) @_def (arguments . (alias) @name) (do_block) @body) @definition.module (#eq? @_def "defmodule"))
((call target: (identifier) @_def (arguments . (alias) @name) (do_block) @body) @definition.interface (#eq? @_def "defprotocol"))
((call target: (identifier) @_def (arguments . (alias) @name) (do_block) @body) @definition.impl (#eq? @_def "defimpl"))
((call target: (identifier) @_def (arguments . (call target: (identifier) @name (arguments)? @arity) (keywords (pair value: (_) @body))?) (do_block)? @body) @definition.function @clause (#match? @_def "^def(p|delegate|guard|guardp|n|np)?$"))
((call target: (identifier) @_def (arguments . (binary_operator left: (call target: (identifier) @name (arguments)? @arity)) (keywords (pair value: (_) @body))?) (do_block)? @body) @definition.function @clause (#match? @_def "^def(p|guard|guardp|n|np)?$"))
((call target: (identifier) @_def (arguments . (identifier) @name (keywords (pair value: (_) @body))?) (do_block)? @body) @definition.function @clause (#match? @_def "^defp?$"))
((call target: (identifier) @_def (arguments . (call target: (identifier) @name (arguments)? @arity) (keywords (pair value: (_) @body))?) (do_block)? @body) @definition.macro @clause (#match? @_def "^defmacrop?$"))
((call target: (identifier) @_def (arguments . (binary_operator left: (call target: (identifier) @name (arguments)? @arity)) (keywords (pair value: (_) @body))?) (do_block)? @body) @definition.macro @clause (#match? @_def "^defmacrop?$"))
((call target: (identifier) @_def (arguments . (identifier) @name (keywords (pair value: (_) @body))?) (do_block)? @body) @definition.macro @clause (#match? @_def "^defmacrop?$"))
(unary_operator "@" operand: (call target: (identifier) @_attribute (arguments (binary_operator left: [(identifier) @name (call target: (identifier) @name)]))) (#match? @_attribute "^(type|typep|opaque)$")) @definition.type
(unary_operator "@" operand: (call target: (identifier) @_attribute (arguments (binary_operator left: (call target: (identifier) @name)))) (#match? @_attribute "^(callback|macrocallback)$")) @definition.method
((do_block (unary_operator "@" operand: (call target: (identifier) @name (arguments))) @definition.constant) (#not-match? @name "^(doc|moduledoc|typedoc|spec|type|typep|opaque|callback|macrocallback|impl|behaviour|derive|compile|dialyzer|tag|moduletag|describetag|enforce_keys|deprecated|since|before_compile|after_compile|on_load|external_resource|optional_callbacks)$"))
(comment) @lead
((unary_operator "@" operand: (call target: (identifier) @_attribute)) @lead (#match? @_attribute "^(doc|spec|impl|deprecated|typedoc|since|tag)$"))

;;; uses
((call target: (identifier) @call) (#not-match? @call "^(def.*|alias|import|require|use)$"))
(call target: (dot right: (identifier) @call))
((call target: (identifier) @_import (arguments . (_) @import.module)) @import (#match? @_import "^(alias|import|require|use)$"))
