(property (key) @name) @definition.key
(comment) @lead
