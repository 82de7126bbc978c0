((list_lit . value: (sym_lit) @_def . value: (sym_lit name: (sym_name) @name)) @definition.module (#eq? @_def "ns"))
((list_lit . value: (sym_lit) @_def . value: (sym_lit name: (sym_name) @name)) @definition.function (#match? @_def "^(defn-?|s/defn|defmulti|deftest|deftask)$"))
((list_lit . value: (sym_lit) @_def . value: (sym_lit name: (sym_name) @name)) @definition.method (#eq? @_def "defmethod"))
((list_lit . value: (sym_lit) @_def . value: (sym_lit name: (sym_name) @name)) @definition.macro (#eq? @_def "defmacro"))
((list_lit . value: (sym_lit) @_def . value: (sym_lit name: (sym_name) @name)) @definition.interface (#match? @_def "^(defprotocol|definterface)$"))
((list_lit . value: (sym_lit) @_def . value: (sym_lit name: (sym_name) @name)) @definition.class (#match? @_def "^(defrecord|deftype)$"))
((list_lit . value: (sym_lit) @_def . value: (sym_lit name: (sym_name) @name)) @definition.variable (#match? @_def "^(def|defonce|s/def|declare)$"))
(list_lit . value: (sym_lit) @_def value: (list_lit . value: (sym_lit name: (sym_name) @name)) @definition.method (#match? @_def "^(defprotocol|definterface|defrecord|deftype)$"))
(list_lit . value: (sym_lit) @_def . value: (sym_lit name: (sym_name) @scope) value: (list_lit . value: (sym_lit name: (sym_name) @name)) @definition.method (#match? @_def "^extend-(protocol|type)$"))
(comment) @lead

;;; uses
(list_lit . value: (sym_lit name: (sym_name) @call))
((list_lit . value: (kwd_lit) @_require value: (vec_lit . value: (sym_lit) @import.module)) @import (#match? @_require "^:(require|use)$"))
((list_lit . value: (kwd_lit) @_require value: (list_lit . value: (sym_lit) @import.module)) @import (#eq? @_require ":import"))
