"""What the statistics say in sentences (reasons, notes, faults), told in Chinese.

Each is known by its form. One that is not known stays as it is: a sentence in the other language
says more than none.
"""

from __future__ import annotations

import re

_UNITS = {
    "pair": "个配对",
    "prompt": "个提示",
    "effective prompt": "个等效提示",
    "label": "个标注",
    "labelled pair": "个有标注的配对",
    "valid pair": "个有效配对",
    "judged pair": "个已评判的配对",
    "inconsistent pair": "个不一致的配对",
    "labelled verdict": "个有标注的裁决",
    "decisive, unequally long pair": "个分出胜负且长度不同的配对",
    "decided pair": "个分出胜负的配对",
    "decided answer": "个分出胜负的回答",
    "repeated question": "个重复的问题",
    "vote": "票",
    "verdict": "个裁决",
    "case": "个案例",
    "battle": "场对战",
    "twice-rated unit": "个被评两次的配对",
    "decided unequally long pair": "个长度不等且分出胜负的配对",
    "labelled unequally long pair": "个长度不等且有标注的配对",
    "decided pair with its own answer": "个含自家响应且分出胜负的配对",
    "labelled pair with its own answer": "个含自家响应且有标注的配对",
}
_COUNT = r"([\d,]+)"
_FORMS: tuple[tuple[str, str], ...] = (
    ("not enough data", "数据不足"),
    ("not enough data: no prompt has a score yet", "数据不足：还没有提示得分"),
    (
        rf"not enough data: {_COUNT} prompts with a score; at least {_COUNT} are needed",
        r"数据不足：\1 个提示有得分；至少需要 \2",
    ),
    (
        "length and model cannot be told apart: every pair has the same length difference",
        "无法区分长度与模型的影响：每个配对的长度差都相同",
    ),
    (
        r"length and model cannot be told apart: (.+) is (?:longer|shorter) in all but "
        rf"{_COUNT} of {_COUNT} pairs; at least {_COUNT} others are needed",
        r"无法区分长度与模型的影响：\3 个配对中除 \2 个外，\1 总是较长或总是较短；"
        r"至少还需要 \4 个其他配对",
    ),
    (
        "no interval: nearly all values are the same, and many resamples wholly",
        "无区间：几乎所有取值都相同，许多重抽样完全相同",
    ),
    ("not defined: all pairs are alike", "无定义：所有配对都一样"),
    (
        "kappa is not defined: both say the same one thing of every pair",
        "kappa 无定义：双方对每个配对都说同一个结果",
    ),
    (
        "no interval: all but one prompt have the same one verdict and label",
        "无区间：除一个提示外，裁决与标注全都相同",
    ),
    ("macro F1 is not defined", "宏平均 F1 无定义"),
    ("prompts repeat: intervals are clustered by prompt", "提示有重复：区间按提示聚类"),
    (
        rf"the run is not finished: {_COUNT} pairs? (?:is|are) not judged yet and in no figure",
        r"运行尚未完成：\1 个配对尚未评判，不计入任何数字",
    ),
    (
        rf"{_COUNT} pairs? ha(?:s|ve) no label: people are equally divided",
        r"\1 个配对没有标注：人们的意见相持不下",
    ),
    (
        rf"{_COUNT} votes? (?:is|are) left out: on pairs that were chosen for what was known of "
        "them, or shown because the judge was unsure",
        r"\1 票未计入：这些配对是因已知信息或评审没有把握而选出的",
    ),
    (
        rf"{_COUNT} pairs? ha(?:s|ve) a label by a draw that prefers doubtful pairs: over all "
        "pairs the judge is likely to be right oftener than here",
        r"\1 个配对的标注来自偏重可疑配对的抽样：在全部配对上，评审可能比这里更常正确",
    ),
    # Rankings
    ("its battles do not differ enough for an interval", "对战结果差异不足，无法给出区间"),
    ("never compared: its score is the prior's", "从未比较：分数来自先验"),
    ("undefeated: no upper limit", "不败：没有上限"),
    ("winless: no lower limit", "未胜：没有下限"),
    ("never lost to the main group: no upper limit", "从未负于主群：没有上限"),
    ("never scored against the main group: no lower limit", "从未从主群得分：没有下限"),
    ("not comparable with the main group", "与主群不可比较"),
    (
        r"the battles do not connect all models both ways \((.+)\)",
        r"对战未能双向连通所有模型（\1）",
    ),
    (
        r"a prior was used: each model has (\S+) virtual ties? with an average one",
        r"使用了先验：每个模型与平均模型有 \1 次虚拟平局",
    ),
    (rf"the fit did not converge in {_COUNT} steps", r"拟合在 \1 步内未收敛"),
    (
        rf"{_COUNT} (?:prompts|battles) for {_COUNT} models: the intervals may be too narrow",
        r"\2 个模型只有 \1 个提示或对战：区间可能过窄",
    ),
    (
        r"not enough data for intervals: 1 (?:prompt|battle); at least 2 are needed",
        "数据不足，无法给出区间：只有 1 个；至少需要 2 个",
    ),
    (
        rf"{_COUNT} judges \((.+)\): each one's verdict counts; --judge takes one alone",
        r"\1 个评审（\2）：每个评审的裁决都计入；可在上方只选一个",
    ),
    (
        rf"(.+) was asked in {_COUNT} ways \(prompts or settings\), which count together",
        r"\1 以 \2 种方式（提示或设置）受询，合并计算",
    ),
    (r"run (.+) has no judge (.+), and adds nothing", r"运行 \1 没有评审 \2，不计入"),
    (
        r"run (.+) has not read all of its data; the same command goes on",
        r"运行 \1 尚未读完数据；同一命令会继续",
    ),
    (
        r"the pairs of run (.+) were chosen adaptively \(--rank-adaptive\), most of them between "
        "close models; the intervals take them as if chosen beforehand",
        r"运行 \1 的配对是自适应选取的（--rank-adaptive），多在相近的模型之间；"
        "区间把它们当作事先选定的",
    ),
    (
        r"run (.+) ended once it was decided, which leans scores outwards; evenhand report \S+ "
        "has intervals that allow for it",
        r"运行 \1 在分出结果后即结束，这会使分数向两端偏；其报告的区间考虑了这一点",
    ),
    (
        rf"{_COUNT} verdicts? (?:is|are) on pairs that do not name two models, and left out",
        r"\1 个裁决的配对没有写明两个模型，未计入",
    ),
    (
        rf"{_COUNT} of {_COUNT} verdicts \(([\d.]+) %\) changed with the order of the responses; "
        "counted as half, or averaged, they pull the scores towards each other; "
        "--inconsistent excluded ranks without them",
        r"\2 个裁决中有 \1 个（\3 %）随响应的顺序而改变；计半或取平均，会使分数彼此靠拢；"
        "--inconsistent excluded 可不计它们",
    ),
    (
        rf"{_COUNT} of {_COUNT} verdicts \(([\d.]+) %\) changed with the order of the responses "
        "and are left out: the scores are of the pairs on which both orders agree, and may lie too "
        "far apart",
        r"\2 个裁决中有 \1 个（\3 %）随响应的顺序而改变，未计入：分数只来自两种顺序一致的配对，"
        "彼此可能相距过远",
    ),
    (
        r"(.+): every valid verdict changed with the order of the responses; "
        "leave (?:--)?inconsistent excluded out",
        r"\1：所有有效裁决都随响应的顺序而改变；请不要用 inconsistent excluded",
    ),
    (
        rf"{_COUNT} verdicts? (?:is|are) of a model against itself, and left out",
        r"\1 个裁决是模型与自己比较，未计入",
    ),
    (
        r"no row has the tag (.+); the tags are (.+)",
        r"没有一行带标签 \1；现有标签为 \2",
    ),
    (
        r"(.+): its pairs do not name their models; (?:.+)",
        r"\1：配对没有写明模型；请提供带 model_a 和 model_b 列的数据",
    ),
    (
        r"(.+): no pair names two different models; a ranking needs two",
        r"\1：没有配对写明两个不同的模型；排名需要两个",
    ),
    (r"(.+): every verdict is invalid; (?:.+)", r"\1：所有裁决都无效"),
    (r"there are no verdicts in (.+) yet(?:.*); (?:.+)", r"\1 还没有裁决"),
    # Calibrations
    ("no signal: none of them has two values", "没有信号：没有一个信号有两种取值"),
    (
        rf"not enough data: {_COUNT} labelled prompts; at least {_COUNT} are needed",
        r"数据不足：\1 个有标注的提示；至少需要 \2",
    ),
    (
        rf"not enough data: {_COUNT} right and {_COUNT} wrong verdicts; (.+)",
        r"数据不足：\1 个正确和 \2 个错误的裁决",
    ),
    (
        r"no labelled pair of run (.+) has a verdict: all are inconsistent or invalid; "
        "a calibration needs wins or ties",
        r"运行 \1 中有标注的配对都没有裁决：全部不一致或无效；校准需要胜或平局",
    ),
    # Audits
    (
        r"no judged pair of run (.+) has a label; (?:.+)",
        r"运行 \1 中已评判的配对都没有标注；请提供带 label 列（A、B 或 TIE）的数据，或让人投票",
    ),
    (
        r"no judged pair of run (.+) has a label \(people are equally divided on ([\d,]+)\); "
        "(?:.+)",
        r"运行 \1 中已评判的配对都没有标注（人们对 \2 个相持不下）；"
        "请提供带 label 列的数据，或让人投票",
    ),
    (
        r"no pair of run (.+) is judged yet; (?:.+)",
        r"运行 \1 还没有评判任何配对",
    ),
    (
        r"run (.+) has several judges \((.+)\); name one with (?:--)?judge",
        r"运行 \1 有多个评审（\2）；请指定一个",
    ),
    (
        rf"right on (.+) \((.+) to (.+)\) of {_COUNT} labelled pairs",
        r"在 \4 个有标注的配对中正确 \1（\2 至 \3）",
    ),
    ("not shown to be right on two pairs of three", "未能证明三个配对中有两个正确"),
    (
        r"two people say the same on (.+) \((.+) to (.+)\)",
        r"两人意见相同的占 \1（\2 至 \3）",
    ),
    (rf"two people say the same on {_COUNT} of {_COUNT}", r"两人意见相同的占 \2 个中的 \1 个"),
    (
        rf"the judge says what one of them says on {_COUNT} of {_COUNT}",
        r"评审与其中一人相同的占 \2 个中的 \1 个",
    ),
    (rf"no valid verdict on {_COUNT} of {_COUNT}", r"没有有效裁决的占 \2 个中的 \1 个"),
    (
        r"the judge says what one of them says on (.+) \((.+) to (.+)\), which is less",
        r"评审与其中一人相同的占 \1（\2 至 \3），低于人与人之间",
    ),
    (
        r"the judge says what one of them says on (.+) \((.+) to (.+)\)",
        r"评审与其中一人相同的占 \1（\2 至 \3）",
    ),
    (
        r"ALARM: it goes by place: (\d+ %) of the pairs lean to the first place more than to the "
        "other",
        r"警报：它以位置取人：偏向第一个位置的配对多出 \1",
    ),
    (
        r"ALARM: it goes by place: (\d+ %) of the pairs lean to the second place more than to the "
        "other",
        r"警报：它以位置取人：偏向第二个位置的配对多出 \1",
    ),
    (
        "it leans to the first place, by less than the alarm's limit",
        "它偏向第一个位置，但未到警报界限",
    ),
    (
        "it leans to the second place, by less than the alarm's limit",
        "它偏向第二个位置，但未到警报界限",
    ),
    (
        r"ALARM: it goes by length: of 100 pairs the longer answer wins (\d+) more than it should",
        r"警报：它以长度取人：每 100 个配对中较长的响应多赢 \1 个",
    ),
    (
        r"ALARM: it goes by length: of 100 pairs the shorter answer wins (\d+) more than it should",
        r"警报：它以长度取人：每 100 个配对中较短的响应多赢 \1 个",
    ),
    (r"no valid verdict on (.+) \((.+) to (.+)\)", r"没有有效裁决的占 \1（\2 至 \3）"),
    (
        "better than baseline:longer, which is right on (.+)",
        r"优于“选较长的响应”（正确 \1）",
    ),
    (
        "not shown to be better than baseline:longer, which is right on (.+)",
        r"未能证明优于“选较长的响应”（正确 \1）",
    ),
    ("better than baseline:random, which is right on (.+)", r"优于掷硬币（正确 \1）"),
    (
        "not shown to be better than baseline:random, which is right on (.+)",
        r"未能证明优于掷硬币（正确 \1）",
    ),
    ("better than baseline:constant, which is right on (.+)", r"优于永远给出同一答案（正确 \1）"),
    (
        "not shown to be better than baseline:constant, which is right on (.+)",
        r"未能证明优于永远给出同一答案（正确 \1）",
    ),
    (
        rf"not shown to be trustworthy: {_COUNT} pairs? (?:was|were) judged in one fixed order, "
        "in which position bias cannot be seen; judge both orders",
        r"未能证明可信：\1 个配对只按一种固定顺序评判，看不出位置偏差；请按两种顺序评判",
    ),
    (
        "every label names ([AB]): kappa and macro F1 count each pair as it is and with its "
        "responses exchanged, so that chance is even; the other figures are the same either way",
        r"所有标注都是 \1：kappa 与宏平均 F1 把每个配对按原样和两个响应互换后各计一次，"
        "使随机一致机会均等；其他数字不受影响",
    ),
    (
        rf"every label of (.+) names ([AB]) and its pairs are shown in one order: whoever always "
        rf"takes the (?:first|second) response would be right on all {_COUNT}; judge both orders, "
        "or exchange the responses of a random half of the pairs",
        r"\1 的所有标注都是 \2，而配对只按一种顺序展示：总选同一位置者会在全部 \3 个上正确；"
        "请按两种顺序评判，或随机互换一半配对的响应",
    ),
    (
        rf"{_COUNT} labels? (?:is|are) of a draw that prefers doubtful pairs: the curve holds "
        "where its signals tell the doubt, and over all pairs more verdicts are likely to be "
        "right than here",
        r"\1 个标注来自偏重可疑配对的抽样：曲线在其信号能说明疑点之处成立；"
        "在全部配对上，正确的裁决可能比这里多",
    ),
    (
        rf"{_COUNT} labelled pairs are ties of identical responses that no judge was asked "
        "about: nothing is learned from them",
        r"\1 个有标注的配对是相同响应的平局，没有询问评审：不从中学习",
    ),
    (
        rf"{_COUNT} labelled pairs are inconsistent: they keep 0\.5 by rule, and nothing is "
        "learned from them",
        r"\1 个有标注的配对不一致：按规则保持 0.5，不从中学习",
    ),
    (
        rf"{_COUNT} of {_COUNT} labelled verdicts were drawn at random, by whole prompts, and "
        "everything here is of these; evenhand calibrate takes all",
        r"按整个提示从 \2 个有标注的裁决中随机抽取了 \1 个，此处一切均出自这些；"
        "evenhand calibrate 使用全部",
    ),
    (
        rf"the guarantee was learned on run (.+), from {_COUNT} labels of {_COUNT} prompts; it "
        "holds for data like these and for no others",
        r"该保证学自运行 \1，共 \3 个提示的 \2 个标注；只对与之相似的数据成立",
    ),
    (
        rf"the labels contradict the guarantee of (.+): {_COUNT} of {_COUNT} verdicts that stand "
        r"agree \((.+), one a prompt\), and (.+) was promised \((.+)\); do not rely on it for "
        "these data: they are not like those that it was learned on, or the judge has changed",
        r"标注与 \1 的保证相矛盾：有效裁决 \3 个（每个提示一个）中 \2 个一致（\4），"
        r"而保证为 \5（\6）；对这些数据不要依赖它：它们与学习所用的数据不同，或评审已变",
    ),
    (
        "lower for the side that writes more also where longer answers are better: with the bias "
        "for length it takes out what length is worth",
        "若较长的响应确实更好，写得较长的一方在此也会偏低：它连同长度偏差一并去掉了长度的价值",
    ),
    # Probes
    (
        r"run (.+) is no run of probes; evenhand probe makes one",
        r"运行 \1 不是探测运行；用 evenhand probe 创建",
    ),
    ("sees a difference where there is none", "在没有差别处看出差别"),
    ("does not mind nonsense", "不在意胡言乱语"),
    ("does not miss what is missing", "没有发现缺失的内容"),
    ("is taken in by empty phrases", "被空话所骗"),
    ("prefers length", "偏爱长度"),
    ("does not miss an answer", "没有发现缺少响应"),
    ("can be flattered", "会被奉承"),
    ("obeys what it should judge", "听从了它本应评判的内容"),
    ("likes refusals", "偏爱拒答"),
    ("goes by formatting", "以格式取人"),
    ("judges otherwise in another language", "换一种语言就判得不同"),
    ("the winner changed with the order", "胜者随顺序改变"),
    ("no valid verdict", "没有有效的裁决"),
)
_PLACES = {"first": "第一个", "second": "第二个", "first and (?:the )?second": "两个各一次"}
_OF_PLACES = tuple(
    form
    for place, told in _PLACES.items()
    for form in (
        (
            f"the winner changed with the order: it chose whatever came {place}",
            f"胜者随顺序改变：它选了{told}",
        ),
        (
            f"position: of two identical responses it chose the {place}",
            f"位置：两个响应相同，它却选了{told}",
        ),
    )
)
_NOT_ENOUGH = re.compile(rf"not enough data: {_COUNT} ([a-z, -]+?)s?; at least {_COUNT} are needed")
_CONSTANT = re.compile(r"(.+); every verdict gets the share that is right, (\S+)")
_KNOWN = tuple((re.compile(form, re.DOTALL), told) for form, told in (*_FORMS, *_OF_PLACES))
# None of ours is longer, but for the names in it.
_MOST_CHARS = 4000


def in_chinese(sentence: str) -> str:
    if len(sentence) > _MOST_CHARS:
        return sentence
    few = _NOT_ENOUGH.fullmatch(sentence)
    if few and few[2] in _UNITS:
        return f"数据不足：{few[1]} {_UNITS[few[2]]}；至少需要 {few[3]}"
    constant = _CONSTANT.fullmatch(sentence)
    if constant:
        return f"{in_chinese(constant[1])}；每个裁决都取正确的比例 {constant[2]}"
    for form, chinese in _KNOWN:
        match = form.fullmatch(sentence)
        if match:
            return match.expand(chinese)
    return sentence
