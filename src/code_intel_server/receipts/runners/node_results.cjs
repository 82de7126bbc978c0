// Loaded into every Node.js process below a verify command (NODE_OPTIONS=--require): where that process is a test
// runner, adds a reporter that writes one JSON line an event to the file that settings.json beside this one names, and
// leaves the run to the tests that are named there. Other processes go on untouched.
'use strict'
const fs = require('node:fs')
const path = require('node:path')
const { inspect } = require('node:util')
const settings = JSON.parse(fs.readFileSync(path.join(__dirname, 'settings.json'), 'utf8'))
let jestVersion = ''
const { results, canary, root, only } = settings
const script = process.argv[1] || ''
const here = __dirname
const BETWEEN = ' > '

function write(event) {
  fs.appendFileSync(results, JSON.stringify(event) + '\n')
}
const known = new Map()
function real(file) {
  if (!known.has(file)) known.set(file, fs.existsSync(file) ? fs.realpathSync(file) : file)
  return known.get(file)
}
function unit(file) {
  return file ? path.relative(real(root), real(file)) : ''
}
function named(file, titles) {
  return [unit(file), ...titles].join(BETWEEN)
}
// What was thrown may be anything, also what neither is an error nor becomes text: a reporter that throws ends the run.
function message(error) {
  try {
    const said = (error && (error.stack || error.message)) || error || ''
    return (typeof said === 'string' ? said : inspect(said)).slice(-1500)
  } catch {
    return 'an error that cannot be shown'
  }
}

// The body of the test that must fail: it does by each assertion that tests use, or it passes.
function mustFail() {
  const assert = require('node:assert')
  const wrong = [
    () => assert(false),
    () => assert.equal(1, 2),
    () => assert.strictEqual(1, 2),
    () => assert.deepEqual([1], [2]),
    () => assert.deepStrictEqual([1], [2]),
  ]
  if (globalThis.expect) wrong.push(() => expect(1).toBe(2), () => expect([1]).toEqual([2]))
  for (const check of wrong) {
    try {
      check()
    } catch {
      continue
    }
    return
  }
  throw new Error(canary)
}

// What is wanted is `only`: {files, ids, skip}, each only where it chooses.
function wantsFile(file) {
  const { files, ids, skip = [] } = only
  const name = unit(file)
  return (
    !(files && !files.includes(real(file))) &&
    !skip.includes(name) &&
    !(ids && !ids.some((id) => id === name || id.startsWith(name + BETWEEN)))
  )
}
function wantsTest(id) {
  const { ids, skip = [] } = only
  return !skip.includes(id) && !(ids && !ids.includes(id))
}
// A regular expression for full names as jest and vitest have them; null where no test is chosen by name.
function pattern(between) {
  const { ids, skip = [] } = only
  const titles = (list) =>
    list
      .filter((id) => id.includes(BETWEEN))
      .map((id) => id.replace(/ #\d+$/, '').split(BETWEEN).slice(1).join(between))
      .map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  if (ids && titles(ids).length) return `^(${titles(ids).join('|')})$`
  return titles(skip).length ? `^(?!(${titles(skip).join('|')})$)` : null
}

// mocha: a reporter is a class that gets the runner's events, before the first test begins.
class Mocha {
  constructor(runner) {
    const id = (test) => named(test.file, test.titlePath())
    const end = (test, outcome, error) =>
      write({ event: 'end', id: id(test), unit: unit(test.file), outcome, seconds: (test.duration || 0) / 1000, message: message(error) })
    const prune = (suite) => {
      suite.tests = suite.tests.filter((test) => wantsFile(test.file) && wantsTest(id(test)))
      suite.suites.forEach(prune)
    }
    const mustFail = runner.suite.suites.filter((suite) => canary && suite.title === canary)
    runner.suite.suites = runner.suite.suites.filter((suite) => !mustFail.includes(suite))
    prune(runner.suite)
    runner.suite.suites.push(...mustFail)
    runner.on('test', (test) => write({ event: 'start', id: id(test), unit: unit(test.file) }))
    runner.on('pass', (test) => end(test, 'passed'))
    runner.on('fail', (test, error) => {
      end(test, 'failed', error)
      if (canary && test.title === canary) runner.failures-- // the exit status is that of the other tests
    })
    runner.on('pending', (test) => end(test, 'skipped'))
  }
}

// mocha runs nothing where one file cannot be loaded: it is started again without that file, which fails the run.
function leaveOutUnloadable(home, asked) {
  const loader = path.join(home, 'lib', 'nodejs', 'esm-utils.js')
  if (!fs.existsSync(loader)) return // before version 8
  const utils = require(loader)
  const load = utils.requireOrImport
  utils.requireOrImport = async (file, ...rest) => {
    try {
      return await load(file, ...rest)
    } catch (error) {
      const without = [file, path.relative(process.cwd(), file)].map((name) => `--ignore=${name}`)
      if (asked.includes(without[0])) throw error
      write({ event: 'unbuilt', unit: unit(file), message: message(error) })
      const again = [...process.execArgv, ...asked, ...without]
      const child = require('node:child_process').spawnSync(process.execPath, again, { stdio: 'inherit' })
      process.exit(child.status || 1)
    }
  }
}

// jest: a test case is told when it has ended, a file when it begins; a suite that could not run has an error of its own.
class Jest {
  onTestFileStart(test) {
    write({ event: 'open', unit: unit(test.path) })
  }
  onTestCaseResult(test, result) {
    const outcome = result.status === 'passed' ? 'passed' : result.status === 'failed' ? 'failed' : 'skipped'
    if (outcome === 'skipped' && !wantsTest(named(test.path, [...result.ancestorTitles, result.title]))) return
    write({
      event: 'end',
      id: named(test.path, [...result.ancestorTitles, result.title]),
      unit: unit(test.path),
      outcome,
      seconds: (result.duration || 0) / 1000,
      message: (result.failureMessages || []).join('\n').slice(-1500),
    })
  }
  onTestFileResult(test, result) {
    if (result.testExecError) write({ event: 'unbuilt', unit: unit(test.path), message: message(result.testExecError) })
    write({ event: 'close', unit: unit(test.path) })
  }
  onRunStart() {}
  onRunComplete() {}
  getLastError() {}
}
// 30 wants paths where those before it want objects.
function jestFilter(paths) {
  const objects = parseInt(jestVersion, 10) < 30
  return { filtered: paths.filter(wantsFile).map((test) => (objects ? { test } : test)) }
}
const jestRunner = (home) => (globalConfig, config, ...rest) => {
  const runner = require(require.resolve('jest-circus/runner', { paths: [home, config.rootDir] }))
  const setup = [...config.setupFilesAfterEnv, path.join(here, 'jest_canary.cjs')]
  return (runner.default || runner)(globalConfig, { ...config, setupFilesAfterEnv: setup }, ...rest)
}
function startJest(home) {
  write({ event: 'runner', name: 'jest' })
  jestVersion = require(path.join(home, 'package.json')).version
  process.argv.push('--reporters=' + path.join(here, 'jest_results.cjs'))
  if (Object.keys(only).length) process.argv.push('--filter=' + path.join(here, 'jest_filter.cjs'), '--passWithNoTests')
  if (pattern(' ')) process.argv.push('--testNamePattern=' + pattern(' '))
  if (!canary) return
  const runner = path.join(here, `jest_runner-${process.pid}.cjs`) // each jest of a monorepo has its own; workers load it too
  fs.writeFileSync(runner, `module.exports = require('./node_results.cjs').jestRunner(${JSON.stringify(home)})\n`)
  process.argv.push('--testRunner=' + runner)
}

// vitest: a file that hangs is left out by its name; single files are asked for only where the command asks for none.
function startVitest() {
  write({ event: 'runner', name: 'vitest' })
  process.argv.push('--reporter=' + path.join(here, 'vitest_results.mjs'))
  const { files, ids, skip = [] } = only
  const wanted = files || (ids && [...new Set(ids.map((id) => path.join(root, id.split(BETWEEN)[0])))])
  const asked = process.argv.slice(2).some((word) => word !== 'run' && !word.startsWith('-'))
  if (wanted && !asked) process.argv.push(...wanted, '--passWithNoTests')
  for (const file of skip.filter((id) => !id.includes(BETWEEN))) process.argv.push('--exclude=**/' + file)
  if (pattern(' ')) process.argv.push('--testNamePattern=' + pattern(' '))
}

// node --test: reporters are options of the process itself, so it is started again with them.
function startAgain() {
  const options = process.execArgv
  const theirs = options.filter((word) => word.startsWith('--test-reporter=')).length
  const placed = options.filter((word) => word.startsWith('--test-reporter-destination')).length
  const more = ['--test-reporter=' + path.join(here, 'node_test_results.mjs'), '--test-reporter-destination=' + require('node:os').devNull]
  const shown = theirs ? [] : ['--test-reporter=spec']
  const stdout = Array(Math.max(theirs - placed, 0) + shown.length).fill('--test-reporter-destination=stdout')
  write({ event: 'runner', name: 'node' })
  const child = require('node:child_process').spawnSync(
    process.execPath,
    [...options, ...shown, ...stdout, ...more, ...process.argv.slice(1)],
    { stdio: 'inherit' },
  )
  process.exit(child.status === null ? 1 : child.status)
}
// What tells the processes of its files from those that tests start.
function startedBy(pid) {
  return path.join(here, `node-${pid}`)
}
// One file of node --test, in a process of its own: it ends at once where it is not wanted.
function startFile() {
  if (!wantsFile(script)) process.exit(0)
  restoreEnvironment()
  write({ event: 'open', unit: unit(script) })
  process.on('exit', () => write({ event: 'close', unit: unit(script) }))
  if (canary) {
    setImmediate(() => require('node:test')(canary, mustFail))
  }
}

// What tests start reports nothing, and finds the environment that it finds without us; of Node.js what it loads is told.
function restoreEnvironment() {
  const { env } = process
  const set = (name, value) => (value ? (env[name] = value) : delete env[name])
  const foreign = (folders = '') => folders.split(path.delimiter).filter((one) => !one.startsWith(here)).join(path.delimiter)
  set('PATH', foreign(env.PATH))
  set('PYTHONPATH', foreign(env.PYTHONPATH))
  set('PYTEST_ADDOPTS', (env.PYTEST_ADDOPTS || '').replace(' -p pytest_results', ''))
}

function start() {
  const program = real(script)
  if (process.env.NODE_TEST_CONTEXT) {
    if (script && fs.existsSync(startedBy(process.ppid))) startFile()
  } else if (process.execArgv.includes('--test')) {
    if (!process.execArgv.some((word) => word.includes(here))) startAgain()
    fs.writeFileSync(startedBy(process.pid), '')
  } else if (/[/\\]mocha[/\\]bin[/\\]_?mocha(\.c?js)?$/.test(program)) {
    write({ event: 'runner', name: 'mocha' })
    restoreEnvironment()
    leaveOutUnloadable(path.dirname(path.dirname(program)), process.argv.slice(1))
    process.argv.push('--reporter', __filename)
    // A test that fails: a run in which it does not is one whose results mean nothing.
    if (canary) process.argv.push(path.join(here, 'mocha_canary.cjs'))
  } else if (/[/\\]jest(-cli)?[/\\]bin[/\\]jest\.js$/.test(program)) startJest(path.dirname(path.dirname(program)))
  else if (/[/\\]vitest[/\\]vitest\.mjs$/.test(program)) startVitest()
}
// Which of the project's files this process has loaded, as scripts or as modules.
function tellLoaded() {
  const loaded = new Set()
  try {
    const session = new (require('node:inspector').Session)()
    session.connect()
    session.on('Debugger.scriptParsed', ({ params: { url } }) => {
      const file = url.startsWith('file:') ? require('node:url').fileURLToPath(url) : url
      if (unit(file).startsWith('..') || !path.isAbsolute(file)) return
      const lent = /.*\/node_modules\/(@[^/]+\/)?[^/]+/.exec(file)
      loaded.add(lent ? lent[0] : file)
    })
    session.post('Debugger.enable')
    session.disconnect()
    const files = [...loaded]
    while (files.length) write({ event: 'loaded', files: files.splice(0, 1000) })
  } catch {} // a Node.js without inspector
}
module.exports = Mocha
Object.assign(module.exports, { Jest, jestFilter, jestRunner, canary, mustFail, write, unit, named, message, wantsFile, wantsTest, BETWEEN })
const started = Symbol.for('started')
if (!globalThis[started]) {
  Object.defineProperty(globalThis, started, { value: true })
  if (require('node:worker_threads').isMainThread) {
    process.on('exit', tellLoaded)
    start()
  }
}
