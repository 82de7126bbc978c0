// What TypeScript's language service says, as a truth for benchmarks/resolution.py:
// NODE_PATH=... node benchmarks/resolution_oracles/typescript.js PROJECT OUT.json SEED PER_STRATUM
const ts=require('typescript'),fs=require('fs'),path=require('path'),cp=require('child_process');
const [root0,out,seed,per]=process.argv.slice(2);const root=fs.realpathSync(root0);
let x=+seed;const rnd=()=>{x|=0;x=x+0x6D2B79F5|0;let t=Math.imul(x^x>>>15,1|x);t=t+Math.imul(t^t>>>7,61|t)^t;return((t^t>>>14)>>>0)/4294967296};
const sample=(a,n)=>{a=a.slice();const r=[];while(a.length&&r.length<n)r.push(a.splice(Math.floor(rnd()*a.length),1)[0]);return r};
let files=cp.execSync('git ls-files',{cwd:root,maxBuffer:1e8}).toString().split('\n').filter(f=>/\.(ts|tsx|mts|cts|js|jsx|mjs|cjs)$/.test(f)&&!/\.min\.js$/.test(f)&&fs.existsSync(path.join(root,f))&&fs.statSync(path.join(root,f)).size<1e6);
const abs=files.map(f=>path.join(root,f));
// workspace packages → paths
const paths={};for(const f of cp.execSync('git ls-files',{cwd:root,maxBuffer:1e8}).toString().split('\n').filter(f=>/(^|\/)package\.json$/.test(f))){try{const j=JSON.parse(fs.readFileSync(path.join(root,f)));const d=path.dirname(path.join(root,f));if(j.name){for(const c of ['src/index.ts','src/index.tsx','index.ts','src/index.js','index.js','lib/index.js'])if(fs.existsSync(path.join(d,c))){paths[j.name]=[path.join(d,c)];break}; if(!paths[j.name]&&0)0; paths[j.name+'/*']=[d+'/src/*',d+'/*',d+'/src/*/index.ts'];}}catch(e){}}
let opts={allowJs:true,checkJs:true,target:99,module:99,moduleResolution:100,strict:true,skipLibCheck:true,jsx:1,noEmit:true,baseUrl:root,paths,experimentalDecorators:true,resolveJsonModule:true};
try{const c=ts.readConfigFile(path.join(root,'tsconfig.json'),ts.sys.readFile);const p=ts.parseJsonConfigFileContent(c.config||{},ts.sys,root);for(const k of ['paths','jsx','jsxImportSource','lib','target','customConditions'])if(p.options[k]!==undefined)opts[k]=k=='paths'?{...paths,...Object.fromEntries(Object.entries(p.options.paths).map(([a,b])=>[a,b.map(z=>path.resolve(p.options.baseUrl||root,z))]))}:p.options[k]}catch(e){}
const ver={};const host={getScriptFileNames:()=>abs,getScriptVersion:()=>'1',getScriptSnapshot:f=>{const t=ts.sys.readFile(f);return t===undefined?undefined:ts.ScriptSnapshot.fromString(t)},getCurrentDirectory:()=>root,getCompilationSettings:()=>opts,getDefaultLibFileName:o=>ts.getDefaultLibFilePath(o),fileExists:ts.sys.fileExists,readFile:ts.sys.readFile,readDirectory:ts.sys.readDirectory,directoryExists:ts.sys.directoryExists,getDirectories:ts.sys.getDirectories};
const ls=ts.createLanguageService(host);const prog=ls.getProgram();
const isTest=f=>/(^|\/)(test|tests|__tests__|spec|examples?|docs|bench|benchmarks|website|runtime-tests|fixtures|www)\//.test(f)||/\.(test|spec|bench|config)\.[a-z]+$/.test(f)||/\.d\.ts$/.test(f);
const defs=[];
for(const f of files){const sf=prog.getSourceFile(path.join(root,f));if(!sf)continue;
 const add=(n,owner,kind,inner)=>{if(!n||!ts.isIdentifier(n))return;const p=sf.getLineAndCharacterOfPosition(n.getStart(sf));defs.push({path:f,line:p.line+1,column:p.character,name:n.text,owner,kind,pos:n.getStart(sf)})};
 const visit=(n,owner,depth)=>{
  if(ts.isFunctionDeclaration(n)){ if(depth==0&&(n.body||!n.parent)) add(n.name,owner,'function');ts.forEachChild(n,c=>visit(c,owner,depth+1));return}
  if(ts.isClassDeclaration(n)||ts.isInterfaceDeclaration(n)){ if(depth==0){add(n.name,owner,'class');for(const m of n.members)if((ts.isMethodDeclaration(m)&&(m.body||true)||ts.isPropertyDeclaration(m)||ts.isMethodSignature(m)||ts.isPropertySignature(m)||ts.isGetAccessor(m))&&m.name&&ts.isIdentifier(m.name))add(m.name,n.name?n.name.text:'',ts.isMethodDeclaration(m)||ts.isMethodSignature(m)?'method':'field')};ts.forEachChild(n,c=>visit(c,owner,depth+1));return}
  if((ts.isTypeAliasDeclaration(n)||ts.isEnumDeclaration(n))&&depth==0)add(n.name,owner,'type');
  if(ts.isVariableStatement(n)&&depth==0)for(const d of n.declarationList.declarations)add(d.name,owner,'variable');
  const deeper=ts.isFunctionLike(n)||ts.isBlock(n);ts.forEachChild(n,c=>visit(c,owner,depth+(deeper?1:0)))};
 visit(sf,'',0)}
const cnt=Object.create(null);for(const d of defs)(cnt[d.name]=cnt[d.name]||new Set()).add(d.path+':'+d.owner);
const strata={unique:[],few:[],common:[]};for(const d of defs){if(isTest(d.path)||d.name.length<2)continue;const n=cnt[d.name].size;strata[n==1?'unique':n<=5?'few':'common'].push(d)}
const res={root,exts:['.ts','.tsx','.mts','.cts','.js','.jsx','.mjs','.cjs'],symbols:[],sites:[]};const rel=f=>f.startsWith(root+'/')&&!f.includes('/node_modules/')?f.slice(root.length+1):'/'+f;
for(const s in strata)for(const d of sample(strata[s],+per)){const r=ls.findReferences(path.join(root,d.path),d.pos)||[];const t=new Set();for(const g of r)for(const e of g.references){const f=rel(e.fileName);if(f[0]=='/')continue;const sf=prog.getSourceFile(e.fileName);const p=sf.getLineAndCharacterOfPosition(e.textSpan.start);if(sf.text.substr(e.textSpan.start,d.name.length)!==d.name)continue;t.add(f+'\t'+(p.line+1))}
 res.symbols.push({stratum:s,...d,uses:[...t].sort().map(z=>{const[a,b]=z.split('\t');return[a,+b]})});console.log(s,d.name,d.path,t.size)}
const names=new Set(defs.map(d=>d.name));const sites=[];
for(const f of files){if(isTest(f))continue;const sf=prog.getSourceFile(path.join(root,f));if(!sf)continue;const v=n=>{if(ts.isIdentifier(n)&&names.has(n.text)&&!(n.parent&&n.parent.name===n&&!ts.isPropertyAccessExpression(n.parent)))sites.push([f,n.getStart(sf),n.text,sf]);ts.forEachChild(n,v)};v(sf)}
for(const [f,pos,name,sf] of sample(sites,60)){const r=ls.getDefinitionAtPosition(path.join(root,f),pos)||[];const p=sf.getLineAndCharacterOfPosition(pos);res.sites.push({path:f,line:p.line+1,column:p.character,name,truth:r.map(e=>{const s2=prog.getSourceFile(e.fileName);return[rel(e.fileName),s2?s2.getLineAndCharacterOfPosition(e.textSpan.start).line+1:1]})})}
fs.writeFileSync(out,JSON.stringify(res));
