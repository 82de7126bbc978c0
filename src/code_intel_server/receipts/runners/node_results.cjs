// Loaded into every Node.js process below a verify command (NODE_OPTIONS=--require): where that process is a test
// runner, adds a reporter that writes one JSON line an event to the file that CODE_INTEL_RESULTS names, and leaves
// the run to the files of CODE_INTEL_ONLY. Other processes go on untouched.
'use strict'
const fs = require('node:fs')
const path = require('node:path')
const results = process.env.CODE_INTEL_RESULTS
const only = process.env.CODE_INTEL_ONLY
const script = process.argv[1] || ''
const here = __dirname
const canary = process.env.CODE_INTEL_CANARY

function write(event) {
  fs.appendFileSync(results, JSON.stringify(event) + '\n')
}
function unit(file) {
  return file ? path.relative(process.cwd(), file) : ''
}
function message(error) {
  return String((error && (error.stack || error.message)) || error || '').slice(-1500)
}

// mocha: a reporter is a class that gets the runner's events.
class Mocha {
  constructor(runner) {
    const id = (test) => unit(test.file) + ' > ' + test.titlePath().join(' > ')
    const end = (test, outcome, error) =>
      write({ event: 'end', id: id(test), unit: unit(test.file), outcome, seconds: (test.duration || 0) / 1000, message: message(error) })
    runner.on('test', (test) => write({ event: 'start', id: id(test), unit: unit(test.file) }))
    runner.on('pass', (test) => end(test, 'passed'))
    runner.on('fail', (test, error) => end(test, 'failed', error))
    runner.on('pending', (test) => end(test, 'skipped'))
  }
}

// jest: streamed by onTestCaseResult; a suite that could not run has an error of its own.
class Jest {
  onTestCaseResult(test, result) {
    this.end(test.path, result)
  }
  onTestResult(test, result) {
    if (result.testExecError) write({ event: 'unbuilt', unit: unit(test.path), message: message(result.testExecError) })
  }
  onTestStart() {}
  onRunStart() {}
  onRunComplete() {}
  getLastError() {}
  end(file, result) {
    const outcome = result.status === 'passed' ? 'passed' : result.status === 'failed' ? 'failed' : 'skipped'
    const id = unit(file) + ' > ' + [...result.ancestorTitles, result.title].join(' > ')
    write({ event: 'end', id, unit: unit(file), outcome, seconds: (result.duration || 0) / 1000, message: (result.failureMessages || []).join('\n').slice(-1500) })
  }
}

// node --test: reporters are options of the process itself, so it is started again with them.
function startAgain() {
  const options = process.execArgv
  const theirs = options.filter((word) => word.startsWith('--test-reporter=')).length
  const placed = options.filter((word) => word.startsWith('--test-reporter-destination')).length
  const more = ['--test-reporter=' + path.join(here, 'node_test_results.mjs'), '--test-reporter-destination=' + results]
  const shown = theirs ? [] : ['--test-reporter=spec']
  const stdout = Array(Math.max(theirs - placed, 0) + shown.length).fill('--test-reporter-destination=stdout')
  const child = require('node:child_process').spawnSync(
    process.execPath,
    [...options, ...shown, ...stdout, ...more, ...process.argv.slice(1)],
    { stdio: 'inherit', env: { ...process.env, CODE_INTEL_STARTED: '1' } },
  )
  process.exit(child.status === null ? 1 : child.status)
}

if (results) {
  if (process.execArgv.includes('--test') && !process.env.CODE_INTEL_STARTED && !process.env.NODE_TEST_CONTEXT) startAgain()
  else if (/[/\\]mocha[/\\]bin[/\\]_?mocha(\.js)?$/.test(fs.existsSync(script) ? fs.realpathSync(script) : script)) {
    write({ event: 'runner', name: 'mocha' })
    process.argv.push('--reporter', __filename)
    // A test that fails: a run in which it does not is one whose results mean nothing.
    if (canary) process.argv.push(path.join(here, 'mocha_canary.cjs'), '--grep', canary)
  }
  else if (/[/\\]jest(-cli)?[/\\]bin[/\\]jest\.js$/.test(fs.existsSync(script) ? fs.realpathSync(script) : script)) process.argv.push('--reporters=' + path.join(here, 'jest_results.cjs'))
  else if (/[/\\]vitest[/\\]vitest\.mjs$/.test(fs.existsSync(script) ? fs.realpathSync(script) : script)) process.argv.push('--reporter=' + path.join(here, 'vitest_results.mjs'))
}
module.exports = Mocha
module.exports.Jest = Jest
module.exports.write = write
module.exports.unit = unit
module.exports.message = message
