// A reporter of `node --test`: writes one JSON line an event, as the files' processes do. A test's id is its file and the names above it.
import path from 'node:path'
import hook from './node_results.cjs'

const { message: shown, named, unit, wantsFile, write } = hook

const isFile = ({ nesting, name, file }) => nesting === 0 && path.resolve(name) === file

export default async function* (source) {
  const open = new Map()
  const late = new Map()
  let diagnosed = ''
  yield ''
  for await (const { type, data } of source) {
    const names = open.get(data?.file) ?? open.set(data?.file, []).get(data?.file)
    if (type === 'test:diagnostic' && /^(Error|Warning): /.test(data.message)) diagnosed = data.message
    else if (type === 'test:complete' && diagnosed.startsWith('Error: ') && isFile(data)) {
      late.set(data.file, diagnosed)
      diagnosed = ''
    } else if (type === 'test:start') names[data.nesting] = data.name
    else if (type === 'test:pass' || type === 'test:fail') {
      const whole = isFile(data)
      if (whole && !wantsFile(data.file)) continue
      const error = data.details?.error
      const cause = error?.cause ?? error
      const message = type === 'test:fail' ? shown(cause) : ''
      const said = late.get(data.file) || diagnosed || shown(error?.message)
      if (whole) late.delete(data.file)
      if (whole && (said || type === 'test:fail')) write({ event: 'unbuilt', unit: unit(data.file), message: said.slice(0, 500) })
      diagnosed = ''
      const skipped = data.skip !== undefined || data.todo !== undefined
      const outcome = skipped ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed'
      const id = whole ? unit(data.file) : named(data.file, [...names.slice(0, data.nesting), data.name])
      write({ event: 'end', id, unit: unit(data.file), outcome, seconds: (data.details?.duration_ms ?? 0) / 1000, message })
    }
  }
  // What fails behind the end of its test fails the file, which node does not say where another test of it fails too.
  for (const [file, message] of late) write({ event: 'end', id: unit(file), unit: unit(file), outcome: 'failed', seconds: 0, message })
}
