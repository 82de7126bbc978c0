# What Ruby's own parser says of the files named on stdin: one line of JSON a file,
# {path, definitions: [[kind, qualified name, line]], names: [[byte, name, role]]}. See uses_vs_parsers.py.
require 'json'
require 'ripper'

# A tree as Ripper builds it: [kind, parts...]; names are [:@ident, text, [line, column]].
class Reader
  TOKENS = %i[@ident @const @ivar @cvar @gvar @label @kw].freeze
  ATTRIBUTES = /\A(attr_(accessor|reader|writer)|attr|[cm]attr_(accessor|reader|writer)|class_attribute)\z/
  REQUIRES = %w[require require_relative load autoload].freeze

  attr_reader :definitions, :names

  def initialize(text)
    @starts = [0]
    text.each_line { |line| @starts << @starts.last + line.bytesize }
    @definitions = []
    @names = {}
  end

  def tell(token, role)
    return unless token.is_a?(Array) && TOKENS.include?(token[0]) && token[1].match?(/\A[@$]*[[:alpha:]_]/)

    line, column = token[2]
    name = token[1]
    shift = name[/\A[@$]+/].to_s.bytesize
    name = name[shift..].sub(/[:=]\z/, '')
    @names[@starts[line - 1] + column + shift] ||= [name, role]
  end

  def define(kind, token, scope, outer = '')
    tell(token, 'definition')
    qualified = [scope, outer, token[1].delete_suffix(':')].reject(&:empty?).join('.')
    @definitions << [kind, qualified, token[2][0]]
    qualified
  end

  # The last token of `A::B` and what stands before it.
  def constant(node)
    case node[0]
    when :const_ref, :top_const_ref, :top_const_field, :var_ref, :var_field then [node[1], '']
    when :const_path_ref, :const_path_field
      before = constant(node[1])
      [node[2], before ? [before[1], before[0][1]].reject(&:empty?).join('.') : '']
    end
  end

  def visit(node, scope, type)
    return unless node.is_a?(Array)
    return tell(node, node[0] == :@kw ? 'word' : 'other') if node[0].is_a?(Symbol) && node[0].to_s.start_with?('@')

    case node[0]
    when :class, :module
      token, outer = constant(node[1])
      visit(node[1][1], scope, type) unless outer.empty?
      inner = define(node[0].to_s, token, scope, outer)
      if node[0] == :class && node[2]
        tell(constant(node[2])&.first, 'type')
        visit(node[2], inner, type)
      end
      visit(node.last, inner, true)
    when :sclass
      visit(node[1], scope, type)
      visit(node[2], scope, type)
    when :def
      inner = define(type || scope != '' ? 'method' : 'function', node[1], scope)
      node[2..].each { |one| visit(one, inner, false) }
    when :defs
      visit(node[1], scope, type)
      inner = define('method', node[3], scope)
      node[4..].each { |one| visit(one, inner, false) }
    when :alias, :var_alias
      [node[1], node[2]].each_with_index do |one, place|
        one = one[1] while one[0].is_a?(Symbol) && !one[0].to_s.start_with?('@')
        place.zero? && node[0] == :alias ? define('method', one, scope) : tell(one, 'other')
      end
    when :assign, :opassign
      inner = scope
      if %i[var_field const_path_field top_const_field].include?(node[1][0]) && (found = constant(node[1])) && found[0][0] == :@const && node[0] == :assign
        visit(node[1][1], scope, type) unless found[1].empty?
        inner = define('constant', found[0], scope, found[1])
      elsif node[0] == :opassign && node[1][0] == :var_field && node[1][1][0] == :@const && node[2][1] == '||='
        inner = define('constant', node[1][1], scope)
      else
        visit(node[1], scope, type)
      end
      node[2..].each { |one| visit(one, inner, type) }
    when :massign
      node[1].each { |one| define('constant', one[1], scope) if one.is_a?(Array) && one[0] == :var_field && one[1][0] == :@const }
      node[1..].each { |one| visit(one, scope, type) }
    when :command
      required(node[1], node[2])
      tell(node[1], 'call')
      visit(node[2], declared(node[1][1], node[2], scope), type)
    when :method_add_block
      inner = scope
      called = node[1][0] == :method_add_arg ? [nil, node[1][1][1], node[1][2]] : node[1]
      if called[1].is_a?(Array) && called[1][1] == 'define_method' && (first = symbols(called[2]).first)
        inner = [scope, first[1]].reject(&:empty?).join('.')
      end
      visit(node[1], scope, type)
      visit(node[2], inner, type)
    when :fcall
      tell(node[1], 'call')
    when :vcall
      tell(node[1], 'other')
    when :method_add_arg
      if node[1][0] == :fcall
        required(node[1][1], node[2])
        declared(node[1][1][1], node[2], scope)
      elsif node[1][0] == :call
        structure(node[1][1], node[1][3], node[2], scope)
      end
      node[1..].each { |one| visit(one, scope, type) }
    when :call, :command_call
      structure(node[1], node[3], node[4], scope) if node[0] == :command_call
      visit(node[1], scope, type)
      tell(node[3], 'call') if node[3].is_a?(Array)
      node[4..].each { |one| visit(one, scope, type) }
    when :field
      visit(node[1], scope, type)
      tell(node[3], 'call')
    else
      node.each { |one| visit(one, scope, type) }
    end
  end

  # What `attr_reader :a` and `define_method(:a)` define.
  def declared(name, arguments, scope)
    found = symbols(arguments)
    if name.match?(ATTRIBUTES)
      found.each { |token| define('property', token, scope) }
    elsif %w[define_method alias_method].include?(name) && found.any? && found.first[2] == first(arguments)
      define('method', found.first, scope)
    end
    scope
  end

  # Where the first argument stands, if it is a symbol.
  def first(arguments)
    list = arguments
    list = list[1] while list.is_a?(Array) && %i[arg_paren args_add_block].include?(list[0])
    list[0][1][1][2] if list && list[0][0] == :symbol_literal && list[0][1][0] == :symbol
  end

  # What `Struct.new(:a)` defines.
  def structure(receiver, method, arguments, scope)
    return unless receiver[0] == :var_ref && receiver[1][1] == 'Struct' && method[1] == 'new'

    symbols(arguments).each { |token| define('property', token, scope) }
  end

  # The symbols among the arguments themselves.
  def symbols(arguments)
    list = arguments
    list = list[1] while list.is_a?(Array) && %i[arg_paren args_add_block].include?(list[0])
    (list || []).filter_map { |one| one[1][1] if one.is_a?(Array) && one[0] == :symbol_literal && one[1][0] == :symbol }
  end

  def required(token, arguments)
    list = arguments
    list = list[1] while list.is_a?(Array) && %i[arg_paren args_add_block].include?(list[0])
    texts = (list || []).select { |one| one.is_a?(Array) && one[0] == :string_literal }
    return if texts.empty? || !REQUIRES.include?(token[1])

    tell(token, 'import')
    (list - texts).each { |one| imported(one) }
    texts.each { |one| strings(one) }
  end

  def imported(node)
    return unless node.is_a?(Array)

    TOKENS.include?(node[0]) ? tell(node, 'import') : node.each { |one| imported(one) }
  end

  def strings(node)
    return unless node.is_a?(Array)

    if node[0] == :@tstring_content
      line, column = node[2]
      node[1].scan(/[A-Za-z_]\w*/) { @names[@starts[line - 1] + column + Regexp.last_match.pre_match.bytesize] ||= [Regexp.last_match[0], 'import'] }
    else
      node.each { |one| strings(one) }
    end
  end
end

$stdin.each_line(chomp: true) do |path|
  text = File.read(path, mode: 'rb').force_encoding('UTF-8')
  next unless text.valid_encoding?

  tree = Ripper.sexp(text)
  next if tree.nil?

  reader = Reader.new(text)
  reader.visit(tree, '', false)
  names = reader.names.filter_map { |byte, (name, role)| [byte, name, role] unless role == 'word' }
  puts JSON.generate({ path: path, definitions: reader.definitions, names: names })
end
