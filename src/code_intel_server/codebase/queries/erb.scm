(content) @inject.html
(code) @inject.ruby
(comment_directive) @lead
